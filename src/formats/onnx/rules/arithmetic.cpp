// SPDX-License-Identifier: MIT
// Arithmetic, comparison and choice, element by element with broadcasting.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// A rule for an expression in these inputs, of the first one's type or of `dtype`.
Rule rule_of(std::string_view type, std::int64_t since, const char* expression,
             std::optional<DType> dtype, std::vector<Ref> (*inputs)(Call&)) {
    return {type, since, [code = cat("y0 = ", expression), dtype, inputs](Call& call) {
                const std::vector<Ref> all = inputs(call);
                call.set(0, call.build.pointwise(code, all, dtype.value_or(call.dtype(0))));
            }};
}

/// A rule for an expression in x0.
Rule unary(std::string_view type, std::int64_t since, const char* expression,
           std::optional<DType> dtype = {}) {
    return rule_of(type, since, expression, dtype,
                   [](Call& call) { return std::vector{call.in(0)}; });
}

/// The same in x0 and x1.
Rule binary(std::string_view type, std::int64_t since, const char* expression,
            std::optional<DType> dtype = {}) {
    return rule_of(type, since, expression, dtype, [](Call& call) {
        return std::vector{call.in(0), call.in(1)};
    });
}

/// Input `i` is a known float number that does not widen the other: a scalar of the program.
bool is_scalar(const Call& call, int i) {
    return call.known_number(i) && call.shape(i).rank() <= call.shape(1 - i).rank();
}

/// `code` has x0 and x1, `left` x0 and p0 for the second, `right` p0 for the first.
Ref with_scalars(Call& call, const char* code, const char* left, const char* right) {
    if (!call.in(0)->known && is_scalar(call, 1))
        return call.build.pointwise(left, {call.in(0)}, {*call.known_number(1)});
    if (!call.in(1)->known && is_scalar(call, 0))
        return call.build.pointwise(right, {call.in(1)}, {*call.known_number(0)});
    return call.build.pointwise(code, {call.in(0), call.in(1)});
}

/// A sum or product of tensors that the device knows, which others can take in.
Ref elementwise(Call& call, const char* operation) {
    return call.build.add1("Elementwise", {call.in(0), call.in(1)},
                           {{"operation", std::string(operation)}});
}

bool has_scalar(const Call& call) {
    return (is_scalar(call, 1) && !call.in(0)->known) || (is_scalar(call, 0) && !call.in(1)->known);
}

void add(Call& call) {
    const bool plain = is_float(call.dtype(0)) && !has_scalar(call);
    call.set(0, plain ? elementwise(call, "sum")
                      : with_scalars(call, "y0 = x0 + x1", "y0 = x0 + p0", "y0 = x0 + p0"));
}

void multiply(Call& call) {
    const bool plain = is_float(call.dtype(0)) && !has_scalar(call);
    call.set(0, plain ? elementwise(call, "prod")
                      : with_scalars(call, "y0 = x0 * x1", "y0 = x0 * p0", "y0 = x0 * p0"));
}

void subtract(Call& call) {
    call.set(0, with_scalars(call, "y0 = x0 - x1", "y0 = x0 - p0", "y0 = p0 - x0"));
}

void divide(Call& call) {
    if (is_float(call.dtype(0)))
        return call.set(0, with_scalars(call, "y0 = x0 / x1", "y0 = x0 / p0", "y0 = p0 / x0"));
    call.set(
        0, call.build.pointwise("y0 = truncdiv(x0, x1)", {call.in(0), call.in(1)}, call.dtype(0)));
}

void modulo(Call& call) {
    const bool like_c = call.integer("fmod", 0) != 0;
    call.check(like_c || !is_float(call.dtype(0)) || call.version() >= 28,
               "floats need fmod = 1 before opset 28");
    if (is_float(call.dtype(0))) {
        // What is divided by infinity remains, or is infinity where the signs must agree.
        const char* const code =
            like_c ? "y0 = isinf(x1) && !isinf(x0) ? x0 : x0 - trunc(x0 / x1) * x1"
                   : "y0 = isinf(x1) && !isinf(x0) ? (x0 != 0 && (x0 < 0) != (x1 < 0) ? x1 : x0) : "
                     "x0 - floor(x0 / x1) * x1";
        return call.set(0, call.build.pointwise(code, {call.in(0), call.in(1)}, call.dtype(0)));
    }
    call.set(0, call.build.pointwise(like_c ? "y0 = fmod(x0, x1)" : "y0 = remainder(x0, x1)",
                                     {call.in(0), call.in(1)}, call.dtype(0)));
}

void power(Call& call) {
    const Ref x = call.in(0);
    const std::optional<double> exponent = call.known_number(1);
    if (!exponent || !is_float(call.dtype(0)) || !is_scalar(call, 1))
        return call.set(0,
                        call.build.pointwise("y0 = pow(x0, x1)", {x, call.in(1)}, call.dtype(0)));
    const char* const code = *exponent == 2     ? "y0 = x0 * x0"
                             : *exponent == 3   ? "y0 = x0 * x0 * x0"
                             : *exponent == 1   ? "y0 = x0"
                             : *exponent == 0.5 ? "y0 = sqrt(x0)"
                             : *exponent == -1  ? "y0 = 1 / x0"
                                                : "y0 = pow(x0, p0)";
    call.set(0, call.build.pointwise(code, {x}, {*exponent}));
}

/// Up to opset 6 the second input's dimensions stand for those of the first from `axis` on, or for
/// the last ones, and only where `broadcast` says so.
Ref aligned(Call& call) {
    const Shape &a = call.shape(0), &b = call.shape(1);
    const bool broadcasts = call.integer("broadcast", 0) != 0;
    const std::int64_t given = call.integer("axis", a.rank() - b.rank());
    call.check(broadcasts || a == b, "inputs of shapes ", a.str(), " and ", b.str(),
               " without broadcast");
    if (b.rank() == 0 || b.rank() >= a.rank()) return call.in(1);
    const int axis = call.axis(given, a.rank());
    call.check(axis + b.rank() <= a.rank(), "axis ", axis, " for inputs of shapes ", a.str(),
               " and ", b.str());
    Ints sizes = b.to_vector();
    sizes.insert(sizes.end(), static_cast<std::size_t>(a.rank() - axis - b.rank()), 1);
    return call.build.reshape(call.in(1), Shape(sizes));
}

/// A rule for the opsets up to 6.
Rule old_binary(std::string_view type, const char* expression, std::optional<DType> dtype = {}) {
    return rule_of(type, 1, expression, dtype, [](Call& call) {
        return std::vector{call.in(0), aligned(call)};
    });
}

void old_divide(Call& call) {
    call.supports(is_float(call.dtype(0)), "a quotient of ", name_of(call.dtype(0)),
                  " is not supported before opset 7");
    const Ref second = aligned(call);
    call.set(0, call.build.pointwise("y0 = x0 / x1", {call.in(0), second}));
}

/// Of any number of inputs: "x0 + x1 + ...", in groups that a program holds.
Ref all_inputs(Call& call, const char* code) {
    Ref result = call.in(0);
    for (int i = 1; i < call.inputs(); ++i)
        result = call.build.pointwise(code, {result, call.in(i)}, call.dtype(0));
    return result;
}

void sum_of_all(Call& call) {
    if (call.inputs() == 2) return add(call);
    call.set(0, all_inputs(call, "y0 = x0 + x1"));
}

void mean(Call& call) {
    const Ref total = all_inputs(call, "y0 = x0 + x1");
    call.set(0, call.build.pointwise("y0 = x0 * p0", {total}, {1.0 / call.inputs()}));
}

void maximum(Call& call) {
    call.set(0, all_inputs(call, "y0 = max(x0, x1)"));
}

void minimum(Call& call) {
    call.set(0, all_inputs(call, "y0 = min(x0, x1)"));
}

/// The product of b and a times its sigmoid, rounded as ONNX defines it.
void swish_gate(Call& call) {
    call.check(call.in(0)->spec == call.in(1)->spec, "inputs of ", call.value(0).str(), " and ",
               call.value(1).str());
    call.set(0, call.build.pointwise("y0 = x0 * sigmoid(x0 * p0) * x1", {call.in(0), call.in(1)},
                                     {call.number("alpha", 1)}, call.dtype(0)));
}

void choose(Call& call) {
    call.set(0, call.build.pointwise("y0 = x0 ? x1 : x2", {call.in(0), call.in(1), call.in(2)},
                                     call.dtype(1)));
}

void equal(Call& call) {
    call.check(call.in(0)->strings == call.in(1)->strings, "strings are compared with strings");
    call.set(0, call.build.pointwise("y0 = x0 == x1", {call.in(0), call.in(1)}, DType::boolean));
}

void is_infinite(Call& call) {
    const bool negative = call.integer("detect_negative", 1) != 0,
               positive = call.integer("detect_positive", 1) != 0;
    const char* const code = negative && positive ? "y0 = isinf(x0)"
                             : negative           ? "y0 = isinf(x0) && x0 < 0"
                             : positive           ? "y0 = isinf(x0) && x0 > 0"
                                                  : "y0 = x0 != x0 && x0 == x0";
    call.set(0, call.build.pointwise(code, {call.in(0)}, DType::boolean));
}

void bit_shift(Call& call) {
    const std::string direction = call.text("direction", "");
    call.check(direction == "LEFT" || direction == "RIGHT", "direction '", direction,
               "' is neither LEFT nor RIGHT");
    call.set(0, call.build.pointwise(direction == "LEFT" ? "y0 = shl(x0, x1)" : "y0 = shr(x0, x1)",
                                     {call.in(0), call.in(1)}, call.dtype(0)));
}

}  // namespace

std::vector<Rule> arithmetic_rules() {
    return {
        old_binary("Add", "x0 + x1"),
        old_binary("Sub", "x0 - x1"),
        old_binary("Mul", "x0 * x1"),
        {"Div", 1, old_divide},
        old_binary("Pow", "pow(x0, x1)"),
        old_binary("Equal", "x0 == x1", DType::boolean),
        old_binary("Greater", "x0 > x1", DType::boolean),
        old_binary("Less", "x0 < x1", DType::boolean),
        old_binary("And", "x0 && x1", DType::boolean),
        old_binary("Or", "x0 || x1", DType::boolean),
        old_binary("Xor", "x0 != x1", DType::boolean),
        {"Add", 7, add},
        {"Sub", 7, subtract},
        {"Mul", 7, multiply},
        {"Div", 7, divide},
        {"Mod", 10, modulo},
        {"Pow", 7, power},
        {"Sum", 1, sum_of_all},
        {"Mean", 1, mean},
        {"Max", 1, maximum},
        {"Min", 1, minimum},
        {"SwiGLU", 28, swish_gate},
        {"Where", 9, choose, Rule::Strings::moved, 0b110},
        {"IsInf", 10, is_infinite},
        {"Equal", 7, equal, Rule::Strings::own},
        binary("Greater", 7, "x0 > x1", DType::boolean),
        binary("Less", 7, "x0 < x1", DType::boolean),
        binary("GreaterOrEqual", 12, "x0 >= x1", DType::boolean),
        binary("LessOrEqual", 12, "x0 <= x1", DType::boolean),
        binary("And", 7, "x0 && x1", DType::boolean),
        binary("Or", 7, "x0 || x1", DType::boolean),
        binary("Xor", 7, "x0 != x1", DType::boolean),
        {"BitShift", 11, bit_shift},
        binary("BitwiseAnd", 18, "bitand(x0, x1)"),
        binary("BitwiseOr", 18, "bitor(x0, x1)"),
        binary("BitwiseXor", 18, "bitxor(x0, x1)"),
        unary("BitwiseNot", 18, "bitnot(x0)"),
        unary("Not", 1, "!x0", DType::boolean),
        unary("IsNaN", 9, "isnan(x0)", DType::boolean),
        unary("Abs", 1, "abs(x0)"),
        unary("Neg", 1, "-x0"),
        unary("Sign", 9, "x0 == x0 ? sign(x0) : x0"),  // of NaN, it is NaN
        unary("Exp", 1, "exp(x0)"),
        unary("Log", 1, "log(x0)"),
        unary("Sqrt", 1, "sqrt(x0)"),
        unary("Reciprocal", 1, "1 / x0"),
        unary("Erf", 9, "erf(x0)"),
        unary("Floor", 1, "floor(x0)"),
        unary("Ceil", 1, "ceil(x0)"),
        unary("Round", 11, "round(x0)"),
        unary("Sin", 7, "sin(x0)"),
        unary("Cos", 7, "cos(x0)"),
        unary("Tan", 7, "tan(x0)"),
        unary("Asin", 7, "asin(x0)"),
        unary("Acos", 7, "acos(x0)"),
        unary("Atan", 7, "atan(x0)"),
        unary("Sinh", 9, "sinh(x0)"),
        unary("Cosh", 9, "cosh(x0)"),
        unary("Asinh", 9, "asinh(x0)"),
        unary("Acosh", 9, "acosh(x0)"),
        unary("Atanh", 9, "atanh(x0)"),
    };
}

}  // namespace dlprim::onnx
