// SPDX-License-Identifier: MIT
// How often values fall between edges: each value searches for its place among these.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Range = std::optional<c10::ArrayRef<double>>;

/// The last edge belongs to the bin before it. With `density`, the integral is 1.
at::Tensor counted(const at::Tensor& self, const at::Tensor& edges, const Maybe& weight,
                   bool density) {
    const std::int64_t bins = edges.numel() - 1;
    const at::Tensor values = self.reshape({-1});
    at::Tensor made = at::zeros({bins + 1}, self.options());
    if (values.numel() > 0) {
        const at::Tensor places = at::empty(values.sizes(), values.options().dtype(at::kLong));
        const at::Tensor below = count_below(edges, values, true);
        pointwise_into({places},
                       "y0 = x1 == x2 ? p0 - 1 : x0 == 0 || x0 > p0 || isnan(x1) ? p0 : x0 - 1",
                       {below, values, edges.narrow(0, bins, 1)}, {static_cast<double>(bins)});
        const bool weighted = defined(weight);
        made = made.index_add(0, places,
                              weighted ? weight->reshape({-1})
                                       : at::ones({1}, made.options()).expand(places.sizes()));
    }
    made = made.narrow(0, 0, bins).clone();
    return density ? made / (made.sum() * edges.diff()) : made;
}

/// Ends of the values where none are given. That waits.
at::Tensor edges_of(const at::Tensor& self, std::int64_t bins, const Range& range) {
    TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins);
    double low = 0, high = 1;
    if (range) {
        TORCH_CHECK(range->size() == 2, "torch.histogram(): range should have 2 elements");
        low = (*range)[0];
        high = (*range)[1];
    } else if (self.numel() > 0) {
        const auto [least, most] = self.aminmax();
        const at::Tensor both = at::stack({least, most}).to(at::kCPU, at::kDouble);
        low = both[0].item<double>();
        high = both[1].item<double>();
    }
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogram(): range of [", low,
                ", ", high, "] is not finite");
    TORCH_CHECK(low <= high, "torch.histogram(): min should not exceed max");
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    return at::linspace(low, high, bins + 1, self.options());
}

bool serves_values(const at::Tensor& self) {
    return serves(self) && (self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble);
}

Two by_number(const at::Tensor& self, std::int64_t bins, Range range, const Maybe& weight,
              bool density) {
    const c10::DeviceGuard guard(self.device());
    const at::Tensor edges = edges_of(self, bins, range);
    return {counted(self, edges, weight, density), edges};
}

Two by_edges(const at::Tensor& self, const at::Tensor& bins, const Maybe& weight, bool density) {
    TORCH_CHECK(bins.dim() == 1 && bins.numel() > 1,
                "torch.histogram(): bins tensor should have one dimension and at least 2 elements");
    const c10::DeviceGuard guard(self.device());
    return {counted(self, bins, weight, density), bins.clone()};
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves_values);
    served.impl("histogram.bin_ct", by_number);
    served.impl("histogram.bin_ct_out", into_outs<by_number>);
    served.impl("histogram.bins_tensor", by_edges);
    served.impl("histogram.bins_tensor_out", into_outs<by_edges>);
}

}  // namespace
}  // namespace dlprim_torch
