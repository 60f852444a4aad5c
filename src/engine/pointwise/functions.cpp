// SPDX-License-Identifier: MIT
// The table of functions of the pointwise language.
#include "engine/pointwise/functions.hpp"

#include "base/scalar_value.hpp"
#include "engine/pointwise/special_functions.hpp"

#include <array>
#include <cmath>

namespace dlprim::pointwise {
namespace {

constexpr Function table[] = {
    {"add", Op::add, 2, false, true, "+"},
    {"sub", Op::sub, 2, false, true, "-"},
    {"mul", Op::mul, 2, false, true, "*"},
    {"div", Op::div, 2, false, false, "/"},
    {"neg", Op::neg, 1, false, true, "-"},
    {"less", Op::less, 2, false, true, "<"},
    {"less_equal", Op::less_equal, 2, false, true, "<="},
    {"greater", Op::greater, 2, false, true, ">"},
    {"greater_equal", Op::greater_equal, 2, false, true, ">="},
    {"equal", Op::equal, 2, false, true, "=="},
    {"not_equal", Op::not_equal, 2, false, true, "!="},
    {"and", Op::logical_and, 2, false, true, "&&"},
    {"or", Op::logical_or, 2, false, true, "||"},
    {"not", Op::logical_not, 1, false, true, "!"},
    {"select", Op::select, 3, true, true, ""},
    {"min", Op::min, 2, true, true, ""},
    {"max", Op::max, 2, true, true, ""},
    {"fma", Op::fma, 3, true, true, ""},
    {"pow", Op::pow, 2, true, false, ""},
    {"exp", Op::exp, 1, true, false, ""},
    {"log", Op::log, 1, true, false, ""},
    {"log1p", Op::log1p, 1, true, false, ""},
    {"expm1", Op::expm1, 1, true, false, ""},
    {"sqrt", Op::sqrt, 1, true, false, ""},
    {"rsqrt", Op::rsqrt, 1, true, false, ""},
    {"abs", Op::abs, 1, true, true, ""},
    {"sign", Op::sign, 1, true, true, ""},
    {"floor", Op::floor, 1, true, true, ""},
    {"ceil", Op::ceil, 1, true, true, ""},
    {"round", Op::round, 1, true, true, ""},
    {"trunc", Op::trunc, 1, true, true, ""},
    {"sin", Op::sin, 1, true, false, ""},
    {"cos", Op::cos, 1, true, false, ""},
    {"tan", Op::tan, 1, true, false, ""},
    {"asin", Op::asin, 1, true, false, ""},
    {"acos", Op::acos, 1, true, false, ""},
    {"atan", Op::atan, 1, true, false, ""},
    {"sinh", Op::sinh, 1, true, false, ""},
    {"cosh", Op::cosh, 1, true, false, ""},
    {"tanh", Op::tanh, 1, true, false, ""},
    {"asinh", Op::asinh, 1, true, false, ""},
    {"acosh", Op::acosh, 1, true, false, ""},
    {"atanh", Op::atanh, 1, true, false, ""},
    {"erf", Op::erf, 1, true, false, ""},
    {"sigmoid", Op::sigmoid, 1, true, false, ""},
    {"exp2", Op::exp2, 1, true, false, ""},
    {"log2", Op::log2, 1, true, false, ""},
    {"log10", Op::log10, 1, true, false, ""},
    {"erfc", Op::erfc, 1, true, false, ""},
    {"erfinv", Op::erfinv, 1, true, false, ""},
    {"lgamma", Op::lgamma, 1, true, false, ""},
    {"digamma", Op::digamma, 1, true, false, ""},
    {"trigamma", Op::trigamma, 1, true, false, ""},
    {"atan2", Op::atan2, 2, true, false, ""},
    {"hypot", Op::hypot, 2, true, false, ""},
    {"copysign", Op::copysign, 2, true, false, ""},
    {"nextafter", Op::nextafter, 2, true, false, ""},
    {"fmod", Op::fmod, 2, true, true, ""},
    {"remainder", Op::remainder, 2, true, true, ""},
    {"floordiv", Op::floordiv, 2, true, true, ""},
    {"truncdiv", Op::truncdiv, 2, true, true, ""},
    {"isnan", Op::isnan, 1, true, true, ""},
    {"isinf", Op::isinf, 1, true, true, ""},
    {"bitand", Op::bit_and, 2, true, true, "&"},
    {"bitor", Op::bit_or, 2, true, true, "|"},
    {"bitxor", Op::bit_xor, 2, true, true, "^"},
    {"bitnot", Op::bit_not, 1, true, true, "~"},
    {"shl", Op::shift_left, 2, true, true, "<<"},
    {"shr", Op::shift_right, 2, true, true, ">>"},
    {"uniform", Op::uniform, 3, true, false, ""},
    {"normal", Op::normal, 3, true, false, ""},
    {"random", Op::random, 3, true, true, ""},
};

}  // namespace

const Function* find_function(std::string_view name) {
    for (const Function& f : table)
        if (f.name == name) return &f;
    return nullptr;
}

const Function& function_of(Op op) {
    for (const Function& f : table)
        if (f.op == op) return f;
    return table[0];
}

std::vector<std::string> callable_names() {
    std::vector<std::string> names;
    for (const Function& f : table)
        if (f.callable) names.emplace_back(f.name);
    return names;
}

namespace {

/// The values of functions of one argument.
double of_one(Op op, double a) {
    switch (op) {
        case Op::exp:
            return std::exp(a);
        case Op::log:
            return std::log(a);
        case Op::log1p:
            return std::log1p(a);
        case Op::expm1:
            return std::expm1(a);
        case Op::sqrt:
            return std::sqrt(a);
        case Op::rsqrt:
            return 1 / std::sqrt(a);
        case Op::abs:
            return std::fabs(a);
        case Op::sign:
            return (a > 0) - (a < 0);
        case Op::floor:
            return std::floor(a);
        case Op::ceil:
            return std::ceil(a);
        case Op::round:
            return std::nearbyint(a);
        case Op::trunc:
            return std::trunc(a);
        case Op::sin:
            return std::sin(a);
        case Op::cos:
            return std::cos(a);
        case Op::tan:
            return std::tan(a);
        case Op::asin:
            return std::asin(a);
        case Op::acos:
            return std::acos(a);
        case Op::atan:
            return std::atan(a);
        case Op::sinh:
            return std::sinh(a);
        case Op::cosh:
            return std::cosh(a);
        case Op::tanh:
            return std::tanh(a);
        case Op::asinh:
            return std::asinh(a);
        case Op::acosh:
            return std::acosh(a);
        case Op::atanh:
            return std::atanh(a);
        case Op::erf:
            return std::erf(a);
        case Op::sigmoid:
            return 1 / (1 + std::exp(-a));
        case Op::exp2:
            return std::exp2(a);
        case Op::log2:
            return std::log2(a);
        case Op::log10:
            return std::log10(a);
        case Op::erfc:
            return std::erfc(a);
        case Op::erfinv:
            return erf_inverse(a);
        case Op::lgamma:
            return log_gamma(a);
        case Op::digamma:
            return digamma(a);
        case Op::trigamma:
            return trigamma(a);
        case Op::isnan:
            return a != a;
        case Op::isinf:
            return std::isinf(a);
        default:
            return 0;
    }
}

}  // namespace

double apply(Op op, double a, double b, double c) {
    if (is_bitwise(op)) return static_cast<double>(apply_bits(op, whole_of(a), whole_of(b)));
    switch (op) {
        case Op::add:
            return a + b;
        case Op::sub:
            return a - b;
        case Op::mul:
            return a * b;
        case Op::div:
            return a / b;
        case Op::neg:
            return -a;
        case Op::less:
            return a < b;
        case Op::less_equal:
            return a <= b;
        case Op::greater:
            return a > b;
        case Op::greater_equal:
            return a >= b;
        case Op::equal:
            return a == b;
        case Op::not_equal:
            return a != b;
        case Op::logical_and:
            return a != 0 && b != 0;
        case Op::logical_or:
            return a != 0 || b != 0;
        case Op::logical_not:
            return a == 0;
        case Op::select:
            return a != 0 ? b : c;
        // NaN propagates, as in PyTorch's minimum and maximum.
        case Op::min:
            return a < b || a != a ? a : b;
        case Op::max:
            return a > b || a != a ? a : b;
        case Op::fma:
            return std::fma(a, b, c);
        case Op::pow:
            return std::pow(a, b);
        case Op::atan2:
            return std::atan2(a, b);
        case Op::hypot:
            return std::hypot(a, b);
        case Op::copysign:
            return std::copysign(a, b);
        case Op::nextafter:
            return std::nextafter(a, b);
        case Op::fmod:
            return std::fmod(a, b);
        case Op::remainder:
            return floor_remainder(a, b);
        case Op::floordiv:
            return floor_quotient(a, b);
        case Op::truncdiv:
            return std::trunc(a / b);
        default:
            return of_one(op, a);
    }
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
