// SPDX-License-Identifier: MIT
// Special functions in double.
#include "engine/pointwise/special_functions.hpp"

#include <cmath>
#include <limits>

namespace dlprim::pointwise {
namespace {

constexpr double pi = 3.14159265358979323846;

template <std::size_t n>
double polynomial(const std::array<double, n>& coefficients, double x) {
    double sum = 0;
    for (const double c : coefficients) sum = sum * x + c;
    return sum;
}

}  // namespace

double log_gamma(double x) {
#if defined(__GLIBC__) || defined(__APPLE__)
    int sign = 0;  // std::lgamma writes a global variable
    return ::lgamma_r(x, &sign);
#else
    return std::lgamma(x);
#endif
}

double digamma(double x) {
    if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
    double sum = 0;
    if (x < 0) {
        if (x == std::trunc(x)) return std::numeric_limits<double>::quiet_NaN();
        sum = -pi / std::tan(pi * (x - std::trunc(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) sum -= 1 / x;
    const double z = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x - z * polynomial(digamma_series, z);
}

double trigamma(double x) {
    double sum = 0, sign = 1;
    if (x < 0.5) {
        const double s = std::sin(pi * (x - std::trunc(x)));
        sum = -pi * pi / (s * s);
        sign = -1;
        x = 1 - x;
    }
    for (; x < 10; x += 1) sum += 1 / (x * x);
    const double z = 1 / (x * x);
    sum += (1 + 0.5 / x + z * polynomial(trigamma_series, z)) / x;
    return sign * sum;
}

double erf_inverse(double x) {
    if (std::fabs(x) == 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
    const double w = -std::log((1 - x) * (1 + x));
    double y = x * (w < 5 ? polynomial(erfinv_centre, w - 2.5)
                          : polynomial(erfinv_tail, std::sqrt(w) - 3));
    for (int step = 0; step < 2; ++step)
        y -= (std::erf(y) - x) / (2 / std::sqrt(pi) * std::exp(-y * y));
    return y;
}

double floor_remainder(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_quotient(double a, double b) {
    if (b == 0) return a / b;
    const double rest = std::fmod(a, b);
    const double exact = (a - rest) / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
    if (exact == 0) return std::copysign(0.0, a / b);
    const double down = std::floor(exact);
    return exact - down > 0.5 ? down + 1 : down;
}

}  // namespace dlprim::pointwise
