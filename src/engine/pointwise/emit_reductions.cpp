// SPDX-License-Identifier: MIT
// OpenCL C text of what reductions begin with, how two of their values combine, and how they end.
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
            return job_.type == Compute::i64 ? "LONG_MIN" : literal(-infinity);
        case Output::Kind::min:
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

std::string Emitter::combine_function(std::size_t k, bool scalar) const {
    const JobOutput& out = job_.outputs[k];
    const std::string type = scalar ? scalar_ : vector_;
    TextWriter os;
    os << type << " " << combine(k, scalar) << "(" << type << " a, " << type << " b) {\n";
    const auto cmp = [&](const std::string& text) {
        return scalar || width_ == 1 ? cat("(", mask_scalar_, ")(", text, ")")
                                     : cat("(", text, ")");
    };
    const bool whole = job_.type == Compute::i64;
    if (out.kind == Output::Kind::custom) {
        const Tape& tape = *out.combine;
        const auto value = [&](int i) {
            const Instruction& in = tape.code[static_cast<std::size_t>(i)];
            const std::string prefix = "(" + type + ")(";
            if (in.op == Op::constant) return prefix + literal(in.value) + ")";
            if (is_truth(in.op)) return cat("select(", prefix, "0), ", prefix, "1), m", i, ")");
            return cat("t", i);
        };
        const auto truth = [&](int i) {
            if (is_truth(tape.code[static_cast<std::size_t>(i)].op)) return cat("m", i);
            return cmp(value(i) + " != (" + type + ")(0)");
        };
        for (std::size_t i = 0; i < tape.code.size(); ++i) {
            const Instruction& in = tape.code[i];
            if (in.op == Op::constant) continue;
            const std::string mask = scalar || width_ == 1 ? mask_scalar_ : mask_;
            os << "    const " << (is_truth(in.op) ? mask + " m" : type + " t") << i << " = ";
            if (in.op == Op::input)
                os << (in.number ? "b" : "a");
            else
                os << expression(tape, in, value, truth, scalar);
            os << ";\n";
        }
        os << "    return " << value(tape.results[0]) << ";\n}\n";
        return os.str();
    }
    switch (out.kind) {
        case Output::Kind::prod:
            os << "    return a * b;\n";
            break;
        case Output::Kind::max:
        case Output::Kind::min: {
            const bool max = out.kind == Output::Kind::max;
            if (whole)
                os << "    return " << (max ? "max" : "min") << "(a, b);\n";
            else
                os << "    return select(b, a, " << cmp(max ? "a > b" : "a < b") << " | "
                   << cmp("a != a") << ");\n";
            break;
        }
        default:
            os << "    return a + b;\n";
    }
    os << "}\n";
    return os.str();
}

std::string Emitter::finish(std::size_t k, const std::string& text, const std::string& has,
                            bool scalar) {
    const JobOutput& out = job_.outputs[k];
    const auto one = [&](const std::string& t) {
        return scalar ? cat("(", scalar_, ")(", t, ")") : splat(t);
    };
    std::string result = text;
    if (out.has_init) {
        const std::string init = one(number(cat("init", k), out.init));
        result = cat(combine(k, scalar), "(", init, ", ", result, ")");
        if (out.kind == Output::Kind::custom)
            result = cat("select(", init, ", ", result, ", ", has, ")");
    }
    // Kernels for GPUs take a factor of sums, too, which is 1, and serve means with the same text.
    const bool any_factor =
        aligned_ && out.kind == Output::Kind::sum && job_.type == Compute::f32 && !out.has_init;
    if (out.scale != 1 || any_factor)
        result = cat("(", result, " * ", one(number(cat("scale", k), out.scale)), ")");
    return result;
}

}  // namespace dlprim::pointwise
