// SPDX-License-Identifier: MIT
// Random numbers, of Philox: each is a function of seed, step and id, by element.
#include "fallback/fallback.hpp"
#include "memory/view.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/keys.hpp"

#include <ATen/ExpandUtils.h>
#include <c10/core/DeviceGuard.h>

#include <cmath>
#include <initializer_list>
#include <limits>

namespace dlprim_torch {
namespace {

using Given = std::optional<at::Generator>;

constexpr double pi = 3.14159265358979323846;
/// A number above 0 and below 1, of which there is a logarithm.
constexpr const char* open_unit = "u = uniform(p0, p1, 0) + 0.0000000298023224;";

/// Fills `self` by a program whose p0 and p1 are the keys.
at::Tensor& fill_random(at::Tensor& self, const std::string& code, const Given& generator,
                        std::initializer_list<dp::Scalar> scalars) {
    if (self.numel() == 0) return self;
    const c10::DeviceGuard guard(self.device());
    std::vector<dp::Scalar> all = keys(generator, self);
    all.insert(all.end(), scalars);
    // The operand is not read; it tells the call its device and the shape.
    pointwise_into({self}, code, {self}, all);
    return self;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Given generator) {
    TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
                " > to=", to);
    return fill_random(self, "v = p2 + (p3 - p2) * uniform(p0, p1, 0); y0 = v < p3 ? v : p2",
                       generator, {from, to});
}

at::Tensor& normal(at::Tensor& self, double mean, double std, Given generator) {
    TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
    if (!has_dtype(self.scalar_type())) {
        at::Tensor parts = at::view_as_real(self);
        normal(parts, mean, std / std::sqrt(2.0), generator);
        return self;
    }
    return fill_random(self, "y0 = p2 + p3 * normal(p0, p1, 0)", generator, {mean, std});
}

at::Tensor normal_tensor_float(const at::Tensor& mean, double std, Given generator) {
    at::Tensor made = at::empty(mean.sizes(), mean.options());
    return normal(made, 0, std, generator).add_(mean);
}

at::Tensor normal_float_tensor(double mean, const at::Tensor& std, Given generator) {
    at::Tensor made = at::empty(std.sizes(), std.options());
    return normal(made, 0, 1, generator).mul_(std).add_(mean);
}

at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std, Given generator) {
    at::Tensor made = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
    return normal(made, 0, 1, generator).mul_(std).add_(mean);
}

at::Tensor& log_normal(at::Tensor& self, double mean, double std, Given generator) {
    TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
    return fill_random(self, "y0 = exp(p2 + p3 * normal(p0, p1, 0))", generator, {mean, std});
}

at::Tensor& exponential(at::Tensor& self, double lambda, Given generator) {
    TORCH_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
    return fill_random(self, std::string(open_unit) + "y0 = -log(u) / p2", generator, {lambda});
}

at::Tensor& cauchy(at::Tensor& self, double median, double sigma, Given generator) {
    TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
    return fill_random(self, std::string(open_unit) + "y0 = p2 + p3 * tan(p4 * (u - 0.5))",
                       generator, {median, sigma, pi});
}

at::Tensor& geometric(at::Tensor& self, double p, Given generator) {
    TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    return fill_random(self, std::string(open_unit) + "y0 = ceil(log(u) / p2)", generator,
                       {std::log1p(-p)});
}

at::Tensor& bernoulli_float(at::Tensor& self, double p, Given generator) {
    TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
    return fill_random(self, "y0 = uniform(p0, p1, 0) < p2", generator, {p});
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Given generator) {
    if (self.numel() == 0) return self;
    const c10::DeviceGuard guard(self.device());
    const at::Tensor chances = p.to(self.device()).expand(self.sizes());
    pointwise_into({self}, "y0 = uniform(p0, p1, 0) < x0", {chances}, keys(generator, self));
    return self;
}

/// Floats hold integers of 24 bits, and take them from uniform(). Integers are exact; 63 random
/// bits serve ranges that are not wider.
at::Tensor& random_from(at::Tensor& self, std::int64_t from, std::optional<std::int64_t> to,
                        Given generator) {
    const bool whole = at::isIntegralType(self.scalar_type(), true);
    const std::uint64_t most = std::uint64_t{1} << (whole ? 63 : 24);
    const std::uint64_t range =
        to ? static_cast<std::uint64_t>(*to) - static_cast<std::uint64_t>(from) : most;
    if (!to || *to <= from || range >= most + 1 - whole)
        return on_cpu<at::_ops::random__from>(self, from, to, generator);
    if (!whole)
        return fill_random(self, "y0 = p2 + floor(p3 * uniform(p0, p1, 0))", generator,
                           {static_cast<double>(from), static_cast<double>(range)});
    return fill_random(self,
                       "r = random(p0, p1, 0) + 4294967296 * bitand(random(p0, p1, 1), 2147483647);"
                       "y0 = p2 + remainder(r, p3)",
                       generator, {from, static_cast<std::int64_t>(range)});
}

at::Tensor& random_to(at::Tensor& self, std::int64_t to, Given generator) {
    return random_from(self, 0, to, generator);
}

/// All integers that the type holds, from 0.
at::Tensor& random_all(at::Tensor& self, Given generator) {
    constexpr std::int64_t one = 1;
    switch (self.scalar_type()) {
        case at::kBool:
            return random_from(self, 0, 2, generator);
        case at::kByte:
            return random_from(self, 0, 256, generator);
        case at::kChar:
        case at::kShort:
        case at::kInt:
            return random_from(self, 0, one << (self.element_size() * 8 - 1), generator);
        case at::kFloat:
            return random_from(self, 0, one << 24, generator);
        case at::kLong:
            return random_from(self, 0, std::numeric_limits<std::int64_t>::max(), generator);
        default:
            return on_cpu<at::_ops::random_>(self, generator);
    }
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p,
                                           std::optional<bool> train) {
    const c10::DeviceGuard guard(input.device());
    const at::TensorOptions mask_options = input.options().dtype(at::kBool);
    if (!train.value_or(true) || p == 0)
        return {input.clone(), at::ones(input.sizes(), mask_options)};
    if (p == 1) return {at::zeros_like(input), at::zeros(input.sizes(), mask_options)};
    at::Tensor out = at::empty_like(input), mask = at::empty_like(input, mask_options);
    if (input.numel() == 0) return {out, mask};
    std::vector<dp::Scalar> scalars = keys(std::nullopt, input);
    scalars.insert(scalars.end(), {p, 1 / (1 - p)});
    pointwise_into({out, mask}, "y1 = uniform(p0, p1, 0) >= p2; y0 = y1 ? x0 * p3 : 0", {input},
                   scalars);
    return {out, mask};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("uniform_", uniform);
    m.impl("normal_", normal);
    m.impl("normal.Tensor_float", normal_tensor_float);
    m.impl("normal.float_Tensor", normal_float_tensor);
    m.impl("normal.Tensor_Tensor", normal_tensor_tensor);
    m.impl("log_normal_", log_normal);
    m.impl("exponential_", exponential);
    m.impl("cauchy_", cauchy);
    m.impl("geometric_", geometric);
    m.impl("bernoulli_.float", bernoulli_float);
    m.impl("bernoulli_.Tensor", bernoulli_tensor);
    m.impl("random_.from", random_from);
    m.impl("random_.to", random_to);
    m.impl("random_", random_all);
    m.impl("native_dropout", dropout);
}

}  // namespace
}  // namespace dlprim_torch
