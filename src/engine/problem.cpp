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

/// Without options that are not given, whose text is empty, so that a new option leaves the keys of
/// databases as they are.
Attrs given(const Attrs& attrs) {
    Attrs all = attrs;
    for (const auto& [name, value] : attrs.items())
        if (const auto* text = std::get_if<std::string>(&value); text && text->empty())
            all.erase(name);
    return all;
}

}  // namespace

std::string Problem::key(bool with_layouts) const {
    TextWriter out;
    out << op << (phase == Phase::training ? " training" : " inference")
        << (by_itself && with_layouts ? " by itself" : "") << " {" << given(attrs).str() << "} (";
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
