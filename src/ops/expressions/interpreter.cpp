// SPDX-License-Identifier: MIT
// The tree walker, and the functions by name.
#include "ops/expressions/interpreter.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlprim::expressions {

namespace {

struct NamedFunction {
    std::string_view name;
    double (*value)(double a, double b);
};

constexpr NamedFunction functions[] = {
    {"add", [](double a, double b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }},
    {"div", [](double a, double b) { return a / b; }},
    {"neg", [](double a, double) { return -a; }},
    {"less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"less_equal", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"greater_equal", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"not_equal", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
    {"and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
    {"or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
    {"not", [](double a, double) { return a == 0 ? 1.0 : 0.0; }},
    // NaN where an operand is.
    {"min", [](double a, double b) { return a != a || b != b ? a + b : std::min(a, b); }},
    {"max", [](double a, double b) { return a != a || b != b ? a + b : std::max(a, b); }},
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    {"exp", [](double a, double) { return std::exp(a); }},
    {"log", [](double a, double) { return std::log(a); }},
    {"log1p", [](double a, double) { return std::log1p(a); }},
    {"expm1", [](double a, double) { return std::expm1(a); }},
    {"sqrt", [](double a, double) { return std::sqrt(a); }},
    {"rsqrt", [](double a, double) { return 1 / std::sqrt(a); }},
    {"abs", [](double a, double) { return std::fabs(a); }},
    {"sign", [](double a, double) { return a > 0   ? 1.0
                                           : a < 0 ? -1.0
                                                   : 0.0; }},
    {"floor", [](double a, double) { return std::floor(a); }},
    {"ceil", [](double a, double) { return std::ceil(a); }},
    {"round", [](double a, double) { return std::nearbyint(a); }},
    {"trunc", [](double a, double) { return std::trunc(a); }},
    {"sin", [](double a, double) { return std::sin(a); }},
    {"cos", [](double a, double) { return std::cos(a); }},
    {"tan", [](double a, double) { return std::tan(a); }},
    {"asin", [](double a, double) { return std::asin(a); }},
    {"acos", [](double a, double) { return std::acos(a); }},
    {"atan", [](double a, double) { return std::atan(a); }},
    {"sinh", [](double a, double) { return std::sinh(a); }},
    {"cosh", [](double a, double) { return std::cosh(a); }},
    {"tanh", [](double a, double) { return std::tanh(a); }},
    {"asinh", [](double a, double) { return std::asinh(a); }},
    {"acosh", [](double a, double) { return std::acosh(a); }},
    {"atanh", [](double a, double) { return std::atanh(a); }},
    {"erf", [](double a, double) { return std::erf(a); }},
    {"erfc", [](double a, double) { return std::erfc(a); }},
    {"lgamma", [](double a, double) { return std::lgamma(a); }},
    {"sigmoid", [](double a, double) { return 1 / (1 + std::exp(-a)); }},
    {"exp2", [](double a, double) { return std::exp2(a); }},
    {"log2", [](double a, double) { return std::log2(a); }},
    {"log10", [](double a, double) { return std::log10(a); }},
    {"atan2", [](double a, double b) { return std::atan2(a, b); }},
    {"hypot", [](double a, double b) { return std::hypot(a, b); }},
    {"copysign", [](double a, double b) { return std::copysign(a, b); }},
    {"fmod", [](double a, double b) { return std::fmod(a, b); }},
    {"truncdiv", [](double a, double b) { return std::trunc(a / b); }},
    {"floordiv", [](double a, double b) { return std::floor(a / b); }},
    {"isnan", [](double a, double) { return a != a ? 1.0 : 0.0; }},
    {"isinf", [](double a, double) { return std::isinf(a) ? 1.0 : 0.0; }},
};

bool is_comparison(std::string_view function) {
    return function.starts_with("less") || function.starts_with("greater") || function == "equal" ||
           function == "not_equal";
}

}  // namespace

Interpreter::Interpreter(const pointwise::Expr& expr) : kind_(Kind::function) {
    using Expr = pointwise::Expr::Kind;
    if (expr.kind == Expr::constant) {
        kind_ = Kind::constant;
        value_ = expr.value;
        return;
    }
    if (expr.kind == Expr::input || expr.kind == Expr::scalar) {
        kind_ = expr.kind == Expr::input ? Kind::input : Kind::scalar;
        number_ = static_cast<std::size_t>(expr.number);
        return;
    }
    for (const auto& argument : expr.args) arguments_.emplace_back(*argument);
    if (expr.function == "select" || expr.function == "fma") {
        kind_ = expr.function == "fma" ? Kind::fma : Kind::select;
        return;
    }
    if (is_comparison(expr.function)) kind_ = Kind::comparison;
    for (const NamedFunction& function : functions)
        if (function.name == expr.function) function_ = function.value;
    if (!function_)
        fail(ErrorKind::unsupported, "the oracle of expressions has no function '", expr.function,
             "'");
}

double Interpreter::argument(std::size_t i, const Operands& operands) const {
    if (i >= arguments_.size()) return 0;
    const double value = arguments_[i](operands);
    return kind_ == Kind::comparison && !operands.wide
               ? static_cast<double>(static_cast<float>(value))
               : value;
}

double Interpreter::operator()(const Operands& operands) const {
    const auto x = [&](std::size_t i) { return argument(i, operands); };
    switch (kind_) {
        case Kind::constant:
            return value_;
        case Kind::input:
            return operands.inputs[number_];
        case Kind::scalar:
            return operands.scalars[number_];
        case Kind::select:
            return x(x(0) != 0 ? 1 : 2);
        case Kind::fma:
            return std::fma(x(0), x(1), x(2));
        case Kind::comparison:
        case Kind::function:
            break;
    }
    return function_(x(0), x(1));
}

}  // namespace dlprim::expressions
