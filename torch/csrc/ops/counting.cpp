// SPDX-License-Identifier: MIT
// How often values occur: by number (bincount) and by interval (histc).
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <optional>
#include <utility>

namespace dlprim_torch {
namespace {

/// How many of `places`, from 0 to bins - 1, name each bin; or the sum of their weights.
at::Tensor counted(const at::Tensor& places, std::int64_t bins, const at::Tensor& weights) {
    return at::zeros({bins}, weights.options())
        .index_add(0, places, weights.expand({places.numel()}));
}

/// The two ends of the range, which are those of the values where both are the same. That waits.
std::pair<double, double> range_of(const at::Tensor& self, double low, double high) {
    if (low == high && self.numel() > 0) {
        const auto [least, most] = self.aminmax();
        const at::Tensor both = at::stack({least, most}).to(at::kCPU, at::kDouble);
        low = both[0].item<double>();
        high = both[1].item<double>();
    }
    if (low == high) {
        low -= 1;
        high += 1;
    }
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high,
                "] is not finite");
    TORCH_CHECK(low < high, "max must be larger than min");
    return {low, high};
}

at::Tensor histc(const at::Tensor& self, std::int64_t bins, const at::Scalar& min,
                 const at::Scalar& max) {
    const c10::DeviceGuard guard(self.device());
    TORCH_CHECK(bins > 0, "bins must be > 0, but got ", bins, " for dimension 0");
    const auto [low, high] = range_of(self, min.to<double>(), max.to<double>());
    if (self.numel() == 0) return at::zeros({bins}, self.options());
    const at::Tensor values = self.reshape({-1});
    const at::Tensor places = at::empty(values.sizes(), values.options().dtype(at::kLong));
    // What lies outside, and NaN, falls into one bin more.
    pointwise_into(
        {places}, "y0 = x0 >= p0 && x0 <= p1 ? min(floor((x0 - p0) * p2 / (p1 - p0)), p2 - 1) : p2",
        {values}, {low, high, static_cast<double>(bins)});
    return counted(places, bins + 1, at::ones({1}, self.options())).narrow(0, 0, bins).clone();
}

bool serves_floats(const at::Tensor& self) {
    return serves(self) && self.is_floating_point();
}

/// Waits for the largest value, which gives the result its size.
at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                    c10::SymInt symbolic) {
    const std::int64_t least = symbolic.expect_int();
    TORCH_CHECK(least >= 0, "minlength should be >= 0");
    TORCH_CHECK(self.dim() == 1 && at::isIntegralType(self.scalar_type(), false),
                "bincount only supports 1-d non-negative integral inputs.");
    const c10::DeviceGuard guard(self.device());
    const bool weighted = defined(weights);
    TORCH_CHECK(!weighted || weights->sizes() == self.sizes(),
                "weights should be 1-d and have the same length as input");
    at::Tensor each = at::ones({1}, self.options().dtype(at::kLong));
    if (weighted) each = weights->scalar_type() == at::kFloat ? *weights : weights->to(at::kDouble);
    if (self.numel() == 0) return at::zeros({least}, each.options().dtype(at::kLong));
    const auto [smallest, largest] = self.aminmax();
    const at::Tensor both = at::stack({smallest, largest}).to(at::kCPU, at::kLong);
    TORCH_CHECK(both[0].item<std::int64_t>() >= 0,
                "bincount only supports 1-d non-negative integral inputs.");
    const std::int64_t bins = std::max(both[1].item<std::int64_t>() + 1, least);
    return counted(self.to(at::kLong), bins, each);
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves_floats);
    served.impl("histc", histc);
    served.impl("histc.out", into_outs<histc>);
    m.impl("bincount", bincount);
}

}  // namespace
}  // namespace dlprim_torch
