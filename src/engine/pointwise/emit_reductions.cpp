// SPDX-License-Identifier: MIT
// OpenCL C text of reductions: their initial values, combinations and final results.
#include "engine/pointwise/emit.hpp"

#include "base/text.hpp"

#include <cmath>

namespace dlprim::pointwise {

std::string Emitter::neutral(const JobOutput& out) const {
    const double infinity = INFINITY;
    switch (out.kind) {
        case Output::Kind::prod:
            return literal(1);
        case Output::Kind::max:
            if (job_.type == Compute::u64) return "0UL";
            return job_.type == Compute::i64 ? "LONG_MIN" : literal(-infinity);
        case Output::Kind::min:
            if (job_.type == Compute::u64) return "ULONG_MAX";
            return job_.type == Compute::i64 ? "LONG_MAX" : literal(infinity);
        default:
            return literal(0);
    }
}

std::string Emitter::combine(std::size_t k, bool scalar) const {
    return cat(scalar || width_ == 1 ? "combine" : "combines", k);
}

std::string Emitter::counted(const JobOutput& out, bool cut) const {
    if (out.flag < 0) return cut ? "live" : cat("(", mask_, ")(-1)");
    return cut ? cat("(live & ", truth(out.flag), ")") : truth(out.flag);
}

/// The text of a custom combination of a and b. Writes the declarations that it needs to `out`.
std::string Emitter::combination(SourceWriter& out, const Tape& tape, bool scalar) const {
    const std::string type = scalar ? scalar_ : vector_, mask = scalar ? mask_scalar_ : mask_;
    const auto value = [&](int i) {
        const Instruction& in = tape.code[static_cast<std::size_t>(i)];
        if (in.op == Op::constant) return filled(literal(in.value), scalar);
        if (!is_truth(in.op)) return cat("t", i);
        return cat("select(", filled("0", scalar), ", ", filled("1", scalar), ", m", i, ")");
    };
    const auto truth = [&](int i) {
        if (is_truth(tape.code[static_cast<std::size_t>(i)].op)) return cat("m", i);
        return compare(cat(value(i), " != ", filled("0", scalar)), scalar);
    };
    for (std::size_t i = 0; i < tape.code.size(); ++i) {
        const Instruction& in = tape.code[i];
        if (in.op == Op::constant) continue;
        const std::string text = in.op == Op::input ? (in.number != 0 ? "b" : "a")
                                                    : expression(in, value, truth, scalar);
        out.line("const ", is_truth(in.op) ? mask + " m" : type + " t", i, " = ", text, ";");
    }
    return value(tape.results[0]);
}

void Emitter::combine_function(SourceWriter& out, std::size_t k, bool scalar) const {
    const JobOutput& output = job_.outputs[k];
    const std::string type = scalar ? scalar_ : vector_;
    out.open(type, " ", combine(k, scalar), "(", type, " a, ", type, " b)");
    std::string result = "a + b";
    if (output.kind == Output::Kind::custom) result = combination(out, *output.combine, scalar);
    if (output.kind == Output::Kind::prod) result = "a * b";
    if (output.kind == Output::Kind::max) result = extreme(true, "a", "b", scalar);
    if (output.kind == Output::Kind::min) result = extreme(false, "a", "b", scalar);
    out.line("return ", result, ";");
    out.close();
}

std::string Emitter::finish(std::size_t k, const std::string& text, const std::string& has,
                            bool scalar) {
    const JobOutput& out = job_.outputs[k];
    std::string result = text;
    if (out.has_init) {
        const std::string init = filled(number(cat("init", k), out.init), scalar);
        result = cat(combine(k, scalar), "(", init, ", ", result, ")");
        if (out.kind == Output::Kind::custom)
            result = cat("select(", init, ", ", result, ", ", has, ")");
    }
    // Kernels for GPUs multiply all sums by a factor, which may be 1, so that sums and means share
    // one text.
    const bool any_factor =
        aligned_ && out.kind == Output::Kind::sum && job_.type == Compute::f32 && !out.has_init;
    if (out.scaled || any_factor)
        result = cat("(", result, " * ", filled(number(cat("scale", k), out.scale), scalar), ")");
    return result;
}

}  // namespace dlprim::pointwise
