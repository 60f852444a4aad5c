// SPDX-License-Identifier: MIT
// OpenCL C text of an operation on values. The values are vectors of a kernel, or scalars and
// vectors that reductions combine.
#include "base/text.hpp"
#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/emit_names.hpp"

namespace dlprim::pointwise {

/// min and max. If the operands are equal, or the first is NaN, the result is the first.
std::string Emitter::extreme(bool max, const std::string& a, const std::string& b,
                             bool scalar) const {
    if (job_.is_whole()) return cat(max ? "max(" : "min(", a, ", ", b, ")");
    return cat("select(", b, ", ", a, ", ", compare(cat(a, max ? " > " : " < ", b), scalar), " | ",
               compare(cat(a, " != ", a), scalar), ")");
}

/// The sign: 1, 0 or -1.
std::string Emitter::sign(const std::string& a, bool scalar) const {
    const std::string zero = filled("0", scalar), one = filled("1", scalar);
    const auto side = [&](const char* than) {
        return cat("select(", zero, ", ", one, ", ", compare(cat(a, than, zero), scalar), ")");
    };
    return cat(side(" > "), " - ", side(" < "));
}

/// An operation on bits. Operands that are not integers become such, and so does the result back.
std::string Emitter::bits(Op op, std::string a, std::string b, bool scalar) const {
    const bool whole = job_.is_whole(), has_sign = job_.type != Compute::u64;
    const int width = scalar ? 1 : width_;
    const std::string type = wide(has_sign ? "long" : "ulong", width);
    if (!whole) {
        a = cat("convert_", type, "_sat(", a, ")");
        if (!b.empty()) b = cat("convert_", type, "_sat(", b, ")");
    }
    const std::string_view sign = function_of(op).text;
    std::string text = op == Op::bit_not ? cat("~", a) : cat(a, " ", sign, " ", b);
    if (op == Op::shift_left || op == Op::shift_right) {
        const std::string range =
            has_sign ? cat(width == 1 ? "(long)" : "", "((", b, " >= 0L) & (", b, " < 64L))")
                     : cat(width == 1 ? "(long)" : "", "(", b, " < 64UL)");
        const std::string otherwise =
            op == Op::shift_left || !has_sign ? cat("(", type, ")(0)") : cat(a, " >> 63");
        text = cat("select(", otherwise, ", ", text, ", ", range, ")");
    }
    return whole ? text : cat("convert_", wide(scalar_, width), "(", text, ")");
}

std::string Emitter::exponential(const std::string& vector) const {
    Instruction exp;
    exp.op = Op::exp;
    exp.a = 0;
    return expression(
        exp, [&](int) { return vector; }, nullptr, false);
}

std::string Emitter::expression(const Instruction& in, const std::function<std::string(int)>& value,
                                const std::function<std::string(int)>& truth, bool scalar) const {
    const bool whole = job_.is_whole();
    const Function& function = function_of(in.op);
    const auto a = [&] { return value(in.a); };
    const auto b = [&] { return value(in.b); };
    const auto c = [&] { return value(in.c); };
    const auto infix = [&] { return cat(a(), " ", function.text, " ", b()); };
    const auto unary = [&](std::string_view name) { return cat(name, "(", a(), ")"); };
    const auto binary = [&] { return cat(function.name, "(", a(), ", ", b(), ")"); };
    if (calls_own(in.op))
        return cat(scalar || width_ == 1 ? "own_" : "owns_", function.name, "(", a(),
                   in.b < 0 ? std::string() : ", " + b(), ")");
    if (is_bitwise(in.op)) return bits(in.op, a(), in.b < 0 ? std::string() : b(), scalar);
    switch (in.op) {
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::div:
            return infix();
        case Op::less:
        case Op::less_equal:
        case Op::greater:
        case Op::greater_equal:
        case Op::equal:
        case Op::not_equal:
            return compare(infix(), scalar);
        case Op::neg:
            return cat("-", a());
        case Op::logical_and:
            return cat(truth(in.a), " & ", truth(in.b));
        case Op::logical_or:
            return cat(truth(in.a), " | ", truth(in.b));
        case Op::logical_not:
            return compare(cat("!", truth(in.a)), scalar);
        case Op::select:
            return cat("select(", c(), ", ", b(), ", ", truth(in.a), ")");
        case Op::max:
        case Op::min:
            return extreme(in.op == Op::max, a(), b(), scalar);
        case Op::fma:
            return whole ? cat(a(), " * ", b(), " + ", c())
                         : cat("fma(", a(), ", ", b(), ", ", c(), ")");
        case Op::pow:
        case Op::atan2:
        case Op::hypot:
        case Op::copysign:
        case Op::nextafter:
        case Op::fmod:
            return binary();
        case Op::truncdiv:
            return cat("trunc(", a(), " / ", b(), ")");
        case Op::abs:
            if (!whole) return unary("fabs");
            return cat("select(", a(), ", -", a(), ", ",
                       compare(cat(a(), " < ", filled("0", scalar)), scalar), ")");
        case Op::sign:
            return sign(a(), scalar);
        case Op::floor:
        case Op::ceil:
        case Op::trunc:
            return whole ? a() : unary(function.name);
        case Op::round:
            return whole ? a() : unary("rint");
        case Op::erf:
            return unary(own_erf() && !scalar ? "vector_erf" : "erf");
        case Op::sigmoid:
            return cat(filled("1", scalar), " / (", filled("1", scalar), " + exp(-", a(), "))");
        case Op::isnan:
        case Op::isinf:
            return compare(whole ? cat(a(), " != ", a()) : unary(function.name), scalar);
        default:
            return unary(function.name);
    }
}

}  // namespace dlprim::pointwise
