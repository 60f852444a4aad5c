// SPDX-License-Identifier: MIT
// The table of functions of the pointwise language.
#include "engine/pointwise/functions.hpp"

#include "base/scalar_value.hpp"
#include "engine/pointwise/special_functions.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace dlprim::pointwise {
namespace {

/// A function of one to three numbers as one of three.
template <typename Of>
constexpr Function::Value valued(Of) {
    return [](double a, double b, double c) -> double {
        if constexpr (std::is_invocable_v<Of, double>)
            return Of{}(a);
        else if constexpr (std::is_invocable_v<Of, double, double>)
            return Of{}(a, b);
        else
            return Of{}(a, b, c);
    };
}

/// By the number of an Op, from Op::add on.
constexpr Function table[] = {
    {"add", Op::add, 2, false, true, 1, "+", valued([](double a, double b) { return a + b; })},
    {"sub", Op::sub, 2, false, true, 1, "-", valued([](double a, double b) { return a - b; })},
    {"mul", Op::mul, 2, false, true, 1, "*", valued([](double a, double b) { return a * b; })},
    {"div", Op::div, 2, false, false, 4, "/", valued([](double a, double b) { return a / b; })},
    {"neg", Op::neg, 1, false, true, 1, "-", valued([](double a) { return -a; })},
    {"less", Op::less, 2, false, true, 1, "<", valued([](double a, double b) { return a < b; })},
    {"less_equal", Op::less_equal, 2, false, true, 1,
     "<=", valued([](double a, double b) { return a <= b; })},
    {"greater", Op::greater, 2, false, true, 1, ">",
     valued([](double a, double b) { return a > b; })},
    {"greater_equal", Op::greater_equal, 2, false, true, 1,
     ">=", valued([](double a, double b) { return a >= b; })},
    {"equal", Op::equal, 2, false, true, 1,
     "==", valued([](double a, double b) { return a == b; })},
    {"not_equal", Op::not_equal, 2, false, true, 1,
     "!=", valued([](double a, double b) { return a != b; })},
    {"and", Op::logical_and, 2, false, true, 1, "&&",
     valued([](double a, double b) { return a != 0 && b != 0; })},
    {"or", Op::logical_or, 2, false, true, 1, "||",
     valued([](double a, double b) { return a != 0 || b != 0; })},
    {"not", Op::logical_not, 1, false, true, 1, "!", valued([](double a) { return a == 0; })},
    {"select", Op::select, 3, true, true, 1, "",
     valued([](double a, double b, double c) { return a != 0 ? b : c; })},
    // NaN propagates, as in PyTorch's minimum and maximum.
    {"min", Op::min, 2, true, true, 3, "",
     valued([](double a, double b) { return a < b || a != a ? a : b; })},
    {"max", Op::max, 2, true, true, 3, "",
     valued([](double a, double b) { return a > b || a != a ? a : b; })},
    {"fma", Op::fma, 3, true, true, 1, "",
     valued([](double a, double b, double c) { return std::fma(a, b, c); })},
    {"pow", Op::pow, 2, true, false, 0, "",
     valued([](double a, double b) { return std::pow(a, b); })},
    {"exp", Op::exp, 1, true, false, 0, "", valued([](double a) { return std::exp(a); })},
    {"log", Op::log, 1, true, false, 0, "", valued([](double a) { return std::log(a); })},
    {"log1p", Op::log1p, 1, true, false, 0, "", valued([](double a) { return std::log1p(a); })},
    {"expm1", Op::expm1, 1, true, false, 0, "", valued([](double a) { return std::expm1(a); })},
    {"sqrt", Op::sqrt, 1, true, false, 0, "", valued([](double a) { return std::sqrt(a); })},
    {"rsqrt", Op::rsqrt, 1, true, false, 0, "", valued([](double a) { return 1 / std::sqrt(a); })},
    {"abs", Op::abs, 1, true, true, 1, "", valued([](double a) { return std::fabs(a); })},
    {"sign", Op::sign, 1, true, true, 1, "", valued([](double a) { return (a > 0) - (a < 0); })},
    {"floor", Op::floor, 1, true, true, 1, "", valued([](double a) { return std::floor(a); })},
    {"ceil", Op::ceil, 1, true, true, 1, "", valued([](double a) { return std::ceil(a); })},
    {"round", Op::round, 1, true, true, 1, "", valued([](double a) { return std::nearbyint(a); })},
    {"trunc", Op::trunc, 1, true, true, 1, "", valued([](double a) { return std::trunc(a); })},
    {"sin", Op::sin, 1, true, false, 0, "", valued([](double a) { return std::sin(a); })},
    {"cos", Op::cos, 1, true, false, 0, "", valued([](double a) { return std::cos(a); })},
    {"tan", Op::tan, 1, true, false, 0, "", valued([](double a) { return std::tan(a); })},
    {"asin", Op::asin, 1, true, false, 0, "", valued([](double a) { return std::asin(a); })},
    {"acos", Op::acos, 1, true, false, 0, "", valued([](double a) { return std::acos(a); })},
    {"atan", Op::atan, 1, true, false, 0, "", valued([](double a) { return std::atan(a); })},
    {"sinh", Op::sinh, 1, true, false, 0, "", valued([](double a) { return std::sinh(a); })},
    {"cosh", Op::cosh, 1, true, false, 0, "", valued([](double a) { return std::cosh(a); })},
    {"tanh", Op::tanh, 1, true, false, 0, "", valued([](double a) { return std::tanh(a); })},
    {"asinh", Op::asinh, 1, true, false, 0, "", valued([](double a) { return std::asinh(a); })},
    {"acosh", Op::acosh, 1, true, false, 0, "", valued([](double a) { return std::acosh(a); })},
    {"atanh", Op::atanh, 1, true, false, 0, "", valued([](double a) { return std::atanh(a); })},
    {"erf", Op::erf, 1, true, false, 0, "", valued([](double a) { return std::erf(a); })},
    {"sigmoid", Op::sigmoid, 1, true, false, 0, "",
     valued([](double a) { return 1 / (1 + std::exp(-a)); })},
    {"exp2", Op::exp2, 1, true, false, 0, "", valued([](double a) { return std::exp2(a); })},
    {"log2", Op::log2, 1, true, false, 0, "", valued([](double a) { return std::log2(a); })},
    {"log10", Op::log10, 1, true, false, 0, "", valued([](double a) { return std::log10(a); })},
    {"erfc", Op::erfc, 1, true, false, 0, "", valued([](double a) { return std::erfc(a); })},
    {"erfinv", Op::erfinv, 1, true, false, 0, "", valued([](double a) { return erf_inverse(a); })},
    {"lgamma", Op::lgamma, 1, true, false, 0, "", valued([](double a) { return log_gamma(a); })},
    {"digamma", Op::digamma, 1, true, false, 0, "", valued([](double a) { return digamma(a); })},
    {"trigamma", Op::trigamma, 1, true, false, 0, "", valued([](double a) { return trigamma(a); })},
    {"atan2", Op::atan2, 2, true, false, 0, "",
     valued([](double a, double b) { return std::atan2(a, b); })},
    {"hypot", Op::hypot, 2, true, false, 0, "",
     valued([](double a, double b) { return std::hypot(a, b); })},
    {"copysign", Op::copysign, 2, true, false, 0, "",
     valued([](double a, double b) { return std::copysign(a, b); })},
    {"nextafter", Op::nextafter, 2, true, false, 0, "",
     valued([](double a, double b) { return std::nextafter(a, b); })},
    {"fmod", Op::fmod, 2, true, true, 0, "",
     valued([](double a, double b) { return std::fmod(a, b); })},
    {"remainder", Op::remainder, 2, true, true, 0, "",
     valued([](double a, double b) { return floor_remainder(a, b); })},
    {"floordiv", Op::floordiv, 2, true, true, 0, "",
     valued([](double a, double b) { return floor_quotient(a, b); })},
    {"truncdiv", Op::truncdiv, 2, true, true, 0, "",
     valued([](double a, double b) { return std::trunc(a / b); })},
    {"isnan", Op::isnan, 1, true, true, 1, "", valued([](double a) { return a != a; })},
    {"isinf", Op::isinf, 1, true, true, 1, "", valued([](double a) { return std::isinf(a); })},
    {"bitand", Op::bit_and, 2, true, true, 0, "&"},
    {"bitor", Op::bit_or, 2, true, true, 0, "|"},
    {"bitxor", Op::bit_xor, 2, true, true, 0, "^"},
    {"bitnot", Op::bit_not, 1, true, true, 0, "~"},
    {"shl", Op::shift_left, 2, true, true, 0, "<<"},
    {"shr", Op::shift_right, 2, true, true, 0, ">>"},
    {"uniform", Op::uniform, 3, true, false, 0, ""},
    {"normal", Op::normal, 3, true, false, 0, ""},
    {"random", Op::random, 3, true, true, 0, ""},
};
constexpr std::size_t first_number = static_cast<std::size_t>(Op::add);
constexpr bool is_in_order() {
    for (std::size_t i = 0; i < std::size(table); ++i)
        if (static_cast<std::size_t>(table[i].op) != first_number + i) return false;
    return std::size(table) == static_cast<std::size_t>(Op::random) - first_number + 1;
}
static_assert(is_in_order());

}  // namespace

const Function* find_function(std::string_view name) {
    for (const Function& f : table)
        if (f.name == name) return &f;
    return nullptr;
}

const Function& function_of(Op op) {
    return table[static_cast<std::size_t>(op) - first_number];
}

std::vector<std::string> callable_names() {
    std::vector<std::string> names;
    for (const Function& f : table)
        if (f.callable) names.emplace_back(f.name);
    return names;
}

double apply(Op op, double a, double b, double c) {
    if (is_bitwise(op)) return static_cast<double>(apply_bits(op, whole_of(a), whole_of(b)));
    return function_of(op).value(a, b, c);
}

double apply_whole(Op op, double a, double b, double c) {
    const std::int64_t p = whole_of(a), q = whole_of(b), r = whole_of(c);
    const auto wraps = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const auto number = [](std::uint64_t value) {
        return static_cast<double>(static_cast<std::int64_t>(value));
    };
    switch (op) {
        case Op::add:
            return number(wraps(p) + wraps(q));
        case Op::sub:
            return number(wraps(p) - wraps(q));
        case Op::mul:
            return number(wraps(p) * wraps(q));
        case Op::fma:
            return number(wraps(p) * wraps(q) + wraps(r));
        case Op::neg:
            return number(0 - wraps(p));
        case Op::abs:
            return number(p < 0 ? 0 - wraps(p) : wraps(p));
        case Op::fmod:
            return static_cast<double>(rest_of(p, q));
        case Op::remainder:
            return static_cast<double>(floor_rest(p, q));
        case Op::floordiv:
            return static_cast<double>(floor_quotient_of(p, q));
        case Op::truncdiv:
            return static_cast<double>(quotient(p, q));
        default:
            return apply(op, a, b, c);
    }
}

}  // namespace dlprim::pointwise
