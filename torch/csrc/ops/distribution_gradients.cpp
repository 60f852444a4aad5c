// SPDX-License-Identifier: MIT
// How draws of gamma and Dirichlet distributions move with the distribution's parameters, by
// PyTorch's approximations (ATen/native/Distributions.h): series near the ends, saddle points where
// parameters are large, and rational functions between. In double where the device has it, since
// the saddle points take differences of large numbers.
#include "device/devices.hpp"
#include "ops/call.hpp"
#include "ops/rounds.hpp"

#include <ATen/ExpandUtils.h>
#include <c10/core/DeviceGuard.h>

#include <array>
#include <charconv>
#include <span>

namespace dlprim_torch {
namespace {

using std::string;

/// The result of `code` for operands of one size, in the type of the first.
at::Tensor computed(const string& code, std::vector<at::Tensor> inputs) {
    const c10::DeviceGuard guard(inputs.front().device());
    at::Tensor out = at::empty(inputs.front().sizes(), inputs.front().options());
    if (out.numel() == 0) return out;
    if (context(out.device().index()).traits().fp64)
        for (at::Tensor& input : inputs) input = input.to(at::kDouble);
    pointwise_into({out}, code, inputs);
    return out;
}

/// A polynomial whose lowest coefficient comes first.
string polynomial(std::span<const double> values, std::string_view z) {
    std::array<char, 32> text{};
    string all, closing;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto written = std::to_chars(text.data(), text.data() + text.size(), values[i]);
        all.append(1, '(').append(text.data(), written.ptr);
        if (i + 1 < values.size()) all.append(" + ").append(z).append(" * ");
        closing += ')';
    }
    return all + closing;
}

/// A polynomial of u and v, from some of the coefficients.
template <std::size_t Powers>
string polynomial(const double (&values)[3][Powers], std::size_t first, std::size_t count) {
    string all = "0";
    constexpr std::array powers{"1", "u", "u * u"};
    for (std::size_t i = 0; i < 3; ++i)
        all.append(" + ")
            .append(powers.at(i))
            .append(" * ")
            .append(polynomial(std::span(values[i]).subspan(first, count), "v"));
    return all;
}

/// Coefficients of powers of v, 4 above the line of a quotient and 4 below, for each power of u.
constexpr double gamma_between[3][8] = {
    {0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084},
    {0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915,
     -0.00058392623},
    {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326,
     0.00085092367, -1.5247877e-07}};

at::Tensor standard_gamma_grad(const at::Tensor& self, const at::Tensor& output) {
    const string code =
        "a = x0; x = x1; n0 = 1; s0 = 1 / a; t0 = 1 / (a * a);" +
        rounds("n# = -n$ * x / #; s# = s$ + n# / (a + #); t# = t$ + n# / ((a + #) * (a + #));", 1,
               5) +
        "low = -x * exp(x) * ((log(x) - digamma(a)) * s5 - t5);"
        "near = (1 + 24 * a * (1 + 12 * a)) * (1440 * a * a + 6 * x * (53 - 120 * x)"
        " - 65 * x * x / a + a * (107 + 3600 * x)) / (1244160 * (a * a) * (a * a));"
        "d = sqrt(8 * a); z = x - a - a * log(x / a); h = 1 / (z * sqrt(z));"
        "w = log(x / a) * (d / (a - x) + (x < a ? -h : h))"
        " - sqrt(2 / a) * (a + x) / ((a - x) * (a - x));"
        "far = -(1 + 1 / (12 * a) * (1 + 1 / (24 * a))) * x * w / d; u = log(x / a); v = log(a);"
        "between = exp((" +
        polynomial(gamma_between, 0, 4) + ") / (" + polynomial(gamma_between, 4, 4) +
        "));"
        "y0 = x < 0.8 ? (isnan(low) ? 0 : low) : a <= 8 ? between :"
        " 0.9 * a <= x && x <= 1.1 * a ? near : far";
    return computed(code, {self, output});
}

/// Coefficients of powers of u, f and v, above the line and below.
constexpr double beta_between[2][3][3][4] = {
    {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
      {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
      {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
     {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
      {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
      {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
     {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
      {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
      {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
    {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
      {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
      {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
     {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
      {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
      {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
     {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
      {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
      {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}}};

/// A polynomial of u, f and v.
string polynomial(const double (&values)[3][3][4]) {
    string all = "0";
    constexpr std::array of_u{"1", "u", "u * u"}, of_f{"1", "f", "f * f"};
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
            all.append(" + ")
                .append(of_u.at(i))
                .append(" * ")
                .append(of_f.at(j))
                .append(" * ")
                .append(polynomial(std::span(values[i][j]), "v"));
    return all;
}

/// Of x near 0 with respect to a, and of 1 - x near 0 with respect to the other parameter.
string beta_ends() {
    return "fa = digamma(a) - digamma(t) - log(x); n0 = 1; s0 = (fa + 1 / a) / a;" +
           rounds("n# = n$ * (# - b) * x / #; s# = s$ + n# / (a + #) * (fa + 1 / (a + #));", 1,
                  10) +
           "low = x * exp(-b * log1p(-x)) * s10;"
           "z = 1 - x; fb = digamma(t) - digamma(a); m0 = 1; e0 = 1; g0 = 0; r0 = fb / b;" +
           rounds(
               "m# = -m$ * z / #; g# = g$ * (a - #) + e$; e# = e$ * (a - #);"
               "r# = r$ + m# / (b + #) * (g# + fb * e#);",
               1, 8) +
           "high = exp((1 - a) * log(x)) * r8;";
}

/// Rice's saddle point, at the mean and beside it.
const char* const beta_saddle =
    "c = a / t; sd = sqrt(a * b / (t + 1)) / t;"
    "at = (1 + 12 * a) * (1 + 12 * b) / (t * t) / (1 - x) * (47 * x * (b * b) * (b * b)"
    " + a * ((43 + 20 * (16 + 27 * b) * x) * (b * b) * b + a * (3 * (59 + 180 * b - 90 * x) * (b * "
    "b)"
    " + a * ((453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11))))))"
    " / (12960 * a * a * a * b * b * (1 + 12 * t));"
    "st = (1 + 1 / (12 * a) + 1 / (288 * a * a)) * (1 + 1 / (12 * b) + 1 / (288 * b * b))"
    " / (1 + 1 / (12 * t) + 1 / (288 * t * t)); o = a * (x - 1) + b * x;"
    "d1 = (2 * a * a * (x - 1) + a * b * (x - 1) - x * b * b) / (sqrt(2 * a / b) * t * sqrt(t) * o "
    "* o);"
    "h = b * log(b / (t * (1 - x))) + a * log(a / (t * x)); d4 = 1 / (h * sqrt(h));"
    "beside = -st * x / sqrt(2 * a * b / t)"
    " * (d1 + 0.5 * log(a / (t * x)) * (sqrt(8 * a * b / t) / o + (x < c ? d4 : -d4)));";

at::Tensor dirichlet_grad(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& total) {
    const string code =
        "x = x0; a = x1; t = x2; b = t - a; w = t * x * (1 - x);" + beta_ends() + beta_saddle +
        "u = log(x); f = log(a) - u; v = log(t) - f;"
        "between = (" +
        polynomial(beta_between[0]) + ") / (" + polynomial(beta_between[1]) +
        ") * x * (digamma(t) - digamma(a)) / b;"
        "y0 = x <= 0.5 && w < 2.5 ? (isnan(low) ? 0 : low) :"
        " x >= 0.5 && w < 0.75 ? (isnan(high) ? 0 : high) : a <= 6 || b <= 6 ? between :"
        " c - 0.1 * sd <= x && x <= c + 0.1 * sd ? at : beside";
    const auto sizes = at::infer_size(at::infer_size(x.sizes(), alpha.sizes()), total.sizes());
    return computed(code, {x.expand(sizes), alpha.expand(sizes), total.expand(sizes)});
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_standard_gamma_grad", standard_gamma_grad);
    m.impl("_dirichlet_grad", dirichlet_grad);
}

}  // namespace
}  // namespace dlprim_torch
