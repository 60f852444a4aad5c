// SPDX-License-Identifier: MIT
// Problem's canonical text.
#include "engine/problem.hpp"

#include "base/text.hpp"

namespace dlprim {

namespace {

void write_operand(TextWriter& out, const Operand& operand, bool with_layouts) {
    out << name_of(operand.dtype) << operand.shape.str();
    if (with_layouts) out << '@' << operand.layout.str();
    if (operand.constant) out << '!';
}

}  // namespace

std::string Problem::key(bool with_layouts) const {
    TextWriter out;
    out << op << (phase == Phase::training ? " training" : " inference")
        << (by_itself && with_layouts ? " by itself" : "") << " {" << attrs.str() << "} (";
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i) out << ", ";
        write_operand(out, inputs[i], with_layouts);
    }
    out << ") -> (";
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (i) out << ", ";
        write_operand(out, outputs[i], with_layouts);
    }
    out << ')';
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind == EpilogueStage::Kind::add)
            out << " +" << stage.operand;
        else
            out << ' ' << stage.activation << '(' << exact(stage.alpha) << ',' << exact(stage.beta)
                << ')';
    }
    if (precision != Precision::fp32) out << ' ' << name_of(precision);
    return std::move(out).str();
}

}  // namespace dlprim
