// SPDX-License-Identifier: MIT
// Draws of gamma, Dirichlet, Poisson and binomial distributions, each one generated program. A
// program has no loops, so that a method that tries until a number is accepted gets as many rounds
// as make it fail less than once in 10^9 elements; then the distribution's mode stands.
#include "ops/call.hpp"
#include "ops/keys.hpp"
#include "ops/rounds.hpp"

#include <ATen/ExpandUtils.h>
#include <c10/core/DeviceGuard.h>

#include <cmath>
#include <limits>

namespace dlprim_torch {
namespace {

using Given = std::optional<at::Generator>;
using std::string;

/// The result of `code`, whose operands are `inputs`, for one element each.
at::Tensor drawn(const string& code, const std::vector<at::Tensor>& inputs, const Given& generator,
                 double scalar = 0) {
    const c10::DeviceGuard guard(inputs.front().device());
    at::Tensor out = at::empty(inputs.front().sizes(), inputs.front().options());
    if (out.numel() == 0) return out;
    std::vector<dp::Scalar> scalars = keys(generator, out);
    scalars.emplace_back(scalar);
    pointwise_into({out}, code, inputs, scalars);
    return out;
}

void require_floats(const char* name, const at::Tensor& tensor) {
    TORCH_CHECK(tensor.is_floating_point(), name, " draws floats, not ", tensor.scalar_type());
}

double smallest(at::ScalarType type) {
    if (type == at::kHalf) return std::ldexp(1.0, -14);
    return type == at::kDouble ? std::numeric_limits<double>::min()
                               : static_cast<double>(std::numeric_limits<float>::min());
}

/// Marsaglia and Tsang's method. A shape below 1 is drawn as one above 1 times a power of a uniform
/// number.
at::Tensor standard_gamma(const at::Tensor& self, Given generator) {
    require_floats("_standard_gamma", self);
    const string code =
        "s = x0 < 1 ? x0 + 1 : x0; d = s - 0.3333333333333333; c = 1 / sqrt(9 * d); r0 = 0;" +
        rounds(
            "n# = normal(p0, p1, @); t# = 1 + c * n#; v# = t# * t# * t#;"
            "u# = uniform(p0, p1, %) + 0.0000000298023224;"
            "r# = r$ > 0 ? r$ : v# > 0 && log(u#) < 0.5 * n# * n# + d - d * v# + d * log(v#) ? "
            "v# : 0;",
            1, 8) +
        "w = uniform(p0, p1, 0) + 0.0000000298023224; g = d * (r8 > 0 ? r8 : 1);"
        "y0 = max(x0 < 1 ? g * exp(log(w) / x0) : g, p2)";
    return drawn(code, {self}, generator, smallest(self.scalar_type()));
}

at::Tensor sample_dirichlet(const at::Tensor& self, Given generator) {
    require_floats("_sample_dirichlet", self);
    const at::Tensor parts = standard_gamma(self, std::move(generator));
    return parts.div(parts.sum(-1, true)).clamp(smallest(self.scalar_type()), 1);
}

/// The rest of a program that has names m, the probability of 0, and a product that gives the
/// probability of # from that of $: how many numbers have a survival function above a uniform
/// number `v`. Both are exact near 0, where the distribution's tail is.
string inverse(std::string_view product, int most) {
    const string last = std::to_string(most);
    string code =
        "v = uniform(p0, p1, 0) + uniform(p0, p1, 1) * 0.000000059604644775390625; m0 = m;";
    code += rounds(product, 1, most) + "t" + last + " = 0; few" + last + " = 0;";
    for (int i = most; i >= 1; --i) code += rounds("t$ = t# + m#; few$ = few# + (v < t$);", i, i);
    return code;
}

/// Below 10 by the distribution's survival function, above by Hoermann's method PTRS.
at::Tensor poisson(const at::Tensor& self, Given generator) {
    require_floats("poisson", self);
    const string code =
        "l = min(x0, 10); m = exp(-l);" + inverse("m# = m$ * (l / #);", 48) +
        "g = max(x0, 10); b = 0.931 + 2.53 * sqrt(g); a = 0.02483 * b - 0.059;"
        "ia = 1.1239 + 1.1328 / (b - 3.4); vr = 0.9277 - 3.6224 / (b - 2); r0 = -1;" +
        rounds(
            "w# = uniform(p0, p1, @) - 0.49999997; s# = 0.5 - abs(w#);"
            "z# = uniform(p0, p1, %) + 0.0000000298023224;"
            "k# = floor((2 * a / s# + b) * w# + g + 0.43); e# = max(k#, 1);"
            "h# = k# < 10 ? k# * log(g) - g - lgamma(k# + 1) : e# * log1p((g - e#) / e#) + e# - g"
            " - 0.5 * log(6.283185307179586 * e#) - (1 - 1 / (30 * e# * e#)) / (12 * e#);"
            "f# = s# >= 0.07 && z# <= vr || k# >= 0 && (s# >= 0.013 || z# <= s#) &&"
            " log(z# * ia / (a / (s# * s#) + b)) <= h#;"
            "r# = r$ >= 0 ? r$ : f# ? k# : -1;",
            1, 12) +
        "y0 = isnan(x0) ? x0 : x0 < 10 ? few0 : r12 >= 0 ? r12 : floor(g)";
    return drawn(code, {self}, generator);
}

/// log(k!) - log(sqrt(2 pi) (k+1)^(k+1/2) e^-(k+1)): what Stirling's formula leaves out.
string tail(const string& k) {
    return "(" + k + " < 10 ? lgamma(" + k + " + 1) - (" + k + " + 0.5) * log(" + k + " + 1) + (" +
           k + " + 1) - 0.9189385332046727 : (1 - 1 / (30 * (" + k + " + 1) * (" + k +
           " + 1))) / (12 * (" + k + " + 1)))";
}

/// Of the rarer outcome, below a mean of 10 by the survival function, above by Hoermann's method
/// BTRS.
at::Tensor binomial(const at::Tensor& count, const at::Tensor& prob, Given generator) {
    require_floats("binomial", count);
    TORCH_CHECK(count.scalar_type() == prob.scalar_type(),
                "binomial takes operands of one type, not ", count.scalar_type(), " and ",
                prob.scalar_type());
    const std::vector<std::int64_t> sizes = at::infer_size(count.sizes(), prob.sizes());
    const string code =
        "n = x0; q = min(x1, 1 - x1); o = q / (1 - q); small = n * q < 10;"
        "l = small ? n : 0; m = exp(l * log1p(-q));" +
        inverse("m# = m$ * ((l - $) / # * o);", 48) +
        "g = small ? 40 : n; q2 = small ? 0.5 : q; o2 = q2 / (1 - q2); d = sqrt(g * q2 * (1 - q2));"
        "b = 1.15 + 2.53 * d; a = 0.0248 * b - 0.0873 + 0.01 * q2; c = g * q2 + 0.5;"
        "vr = 0.92 - 4.2 / b; al = (2.83 + 5.1 / b) * d; md = floor((g + 1) * q2);"
        "h0 = (md + 0.5) * log((md + 1) / (o2 * (g - md + 1))) + " +
        tail("md") + " + " + tail("(g - md)") + "; r0 = -1;" +
        rounds(
            "w# = uniform(p0, p1, @) - 0.49999997; s# = 0.5 - abs(w#);"
            "z# = uniform(p0, p1, %) + 0.0000000298023224;"
            "k# = floor((2 * a / s# + b) * w# + c); in# = k# >= 0 && k# <= g;"
            "e# = min(max(k#, 0), g); f# = g - e#;"
            "h# = h0 + (g + 1) * log((g - md + 1) / (f# + 1)) +"
            " (e# + 0.5) * log(o2 * (f# + 1) / (e# + 1)) - " +
                tail("e#") + " - " + tail("f#") +
                ";"
                "r# = r$ >= 0 ? r$ : in# && (s# >= 0.07 && z# <= vr ||"
                " log(z# * al / (a / (s# * s#) + b)) <= h#) ? k# : -1;",
            1, 12) +
        "k = small ? few0 : r12 >= 0 ? r12 : md; y0 = isnan(x0 + x1) ? x0 + x1 : x1 > 0.5 ? n - k "
        ": k";
    return drawn(code, {count.expand(sizes), prob.expand(sizes)}, generator);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_standard_gamma", standard_gamma);
    m.impl("_sample_dirichlet", sample_dirichlet);
    m.impl("poisson", poisson);
    m.impl("binomial", binomial);
}

}  // namespace
}  // namespace dlprim_torch
