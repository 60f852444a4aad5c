// SPDX-License-Identifier: MIT
// Distances between all pairs of rows of two matrices, or of one: a reduction over broadcast
// differences, which are never stored.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/ExpandUtils.h>

#include <cmath>

namespace dlprim_torch {
namespace {

/// Rows of x1 along dimension -3, those of x2 along -2, and the columns along -1.
struct Pairs {
    at::Tensor x1, x2;
    std::vector<std::int64_t> sizes;  ///< of the distances

    Pairs(const at::Tensor& first, const at::Tensor& second) {
        TORCH_CHECK(first.dim() >= 2 && second.dim() >= 2 && first.size(-1) == second.size(-1),
                    "cdist needs matrices with as many columns, not ", first.sizes(), " and ",
                    second.sizes());
        sizes = at::infer_size(first.sizes().slice(0, static_cast<std::size_t>(first.dim() - 2)),
                               second.sizes().slice(0, static_cast<std::size_t>(second.dim() - 2)));
        std::vector<std::int64_t> one = sizes, two = sizes;
        one.insert(one.end(), {first.size(-2), first.size(-1)});
        two.insert(two.end(), {second.size(-2), second.size(-1)});
        x1 = first.expand(one).unsqueeze(-2);
        x2 = second.expand(two).unsqueeze(-3);
        sizes.insert(sizes.end(), {first.size(-2), second.size(-2)});
    }
};

bool is_served(const at::Tensor& tensor) {
    return at::isFloatingType(tensor.scalar_type()) && has_dtype(tensor.scalar_type());
}

at::Tensor cdist_forward(const at::Tensor& x1, const at::Tensor& x2, double p,
                         std::optional<std::int64_t> mode) {
    TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
    if (!is_served(x1) || x1.scalar_type() != x2.scalar_type())
        return on_cpu<at::_ops::_cdist_forward>(x1, x2, p, mode);
    const c10::DeviceGuard guard(x1.device());
    const Pairs pairs(x1, x2);
    at::Tensor out = at::empty(pairs.sizes, x1.options());
    if (out.numel() == 0) return out;
    if (x1.size(-1) == 0) return out.zero_();
    const auto reduce = [&](const char* code, std::vector<double> scalars = {}) {
        pointwise_into({out}, code, {pairs.x1, pairs.x2}, scalars, false);
    };
    if (p == 0) {
        reduce("y0 = sum[-1](x0 != x1)");
    } else if (p == 1) {
        reduce("y0 = sum[-1](abs(x0 - x1))");
    } else if (std::isinf(p)) {
        reduce("y0 = max[-1](abs(x0 - x1))");
    } else if (p == 2) {
        reduce("d = x0 - x1; y0 = sum[-1](d * d)");
        out.sqrt_();
    } else {
        reduce("y0 = sum[-1](x0 == x1 ? 0 : pow(abs(x0 - x1), p0))", {p});
        out.pow_(1 / p);
    }
    return out;
}

/// The gradient of a distance by an element of x1, as an expression of the distance's gradient x0,
/// the distance x1, the elements x2 and x3, and the exponent p0.
const char* gradient_code(double p) {
    if (p == 1) return "d = x2 - x3; y0 = sum[-2](x0 * sign(d))";
    if (p == 2) return "d = x2 - x3; y0 = sum[-2](x1 == 0 ? 0 : x0 * d / x1)";
    if (std::isinf(p)) return "d = x2 - x3; y0 = sum[-2](abs(d) == x1 ? x0 * sign(d) : 0)";
    return "d = x2 - x3; y0 = sum[-2](x1 == 0 || d == 0 ? 0 : "
           "x0 * sign(d) * pow(abs(d) / x1, p0 - 1))";
}

at::Tensor cdist_backward(const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2,
                          double p, const at::Tensor& distances) {
    const c10::DeviceGuard guard(x1.device());
    const Pairs pairs(x1, x2);
    std::vector<std::int64_t> sizes = pairs.sizes;
    sizes.back() = x1.size(-1);
    at::Tensor out = at::empty(sizes, x1.options());
    if (out.numel() == 0) return out;
    if (p == 0 || grad.numel() == 0) return out.zero_();
    pointwise_into({out}, gradient_code(p),
                   {grad.unsqueeze(-1), distances.unsqueeze(-1), pairs.x1, pairs.x2}, {p}, false);
    return out;
}

/// The places of the pairs i < j in a matrix of n rows that lies in one line.
at::Tensor places_of_pairs(const at::Tensor& self) {
    const at::Tensor pairs = at::triu_indices(self.size(0), self.size(0), 1, at::kLong);
    return (pairs[0] * self.size(0) + pairs[1]).to(self.device());
}

at::Tensor pdist_forward(const at::Tensor& self, double p) {
    TORCH_CHECK(self.dim() == 2, "_pdist_forward requires a matrix, not ", self.sizes());
    const c10::DeviceGuard guard(self.device());
    const at::Tensor places = places_of_pairs(self);
    if (places.numel() == 0) return at::empty({0}, self.options());
    const at::Tensor all = cdist_forward(self, self, p, std::nullopt).view({-1});
    return new_tensor(results_of(dp::ops::Gather{}, {view_of(all), view_of(places)})[0],
                      self.device());
}

/// A symmetric matrix of values of pairs.
at::Tensor symmetric(const at::Tensor& values, const at::Tensor& places, std::int64_t n) {
    const dp::ops::Scatter options{.shape = n * n};
    const at::Tensor half =
        new_tensor(results_of(options, {view_of(places), view_of(values)})[0], values.device());
    return half.view({n, n}) + half.view({n, n}).t();
}

at::Tensor pdist_backward(const at::Tensor& grad, const at::Tensor& self, double p,
                          const at::Tensor& distances) {
    const c10::DeviceGuard guard(self.device());
    if (distances.numel() == 0) return at::zeros_like(self);
    const std::int64_t n = self.size(0);
    const at::Tensor places = places_of_pairs(self);
    return cdist_backward(symmetric(grad, places, n), self, self, p,
                          symmetric(distances, places, n));
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_cdist_forward", cdist_forward);
    const KernelsOfSome served = m.where(is_served);
    served.impl("_cdist_backward", cdist_backward);
    served.impl("_pdist_forward", pdist_forward);
    served.impl("_pdist_backward", pdist_backward);
}

}  // namespace
}  // namespace dlprim_torch
