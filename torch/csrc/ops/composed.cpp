// SPDX-License-Identifier: MIT
// Operators that are a few others, or one program that no row can say.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>

#include <cmath>

namespace dlprim_torch {
namespace {

/// Truth values are counted as integers, which float would not hold beyond 2^24.
at::Tensor count_nonzero(const at::Tensor& self, c10::IntArrayRef dim) {
    return self.ne(0).sum(dim);
}

at::Tensor trace(const at::Tensor& self) {
    TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
    return self.diagonal().sum();
}

at::Tensor& polygamma_out(std::int64_t n, const at::Tensor& self, at::Tensor& out) {
    if (n == 0) return at::digamma_out(out, self);
    if (n > 1 || !has_dtype(self.scalar_type()))
        return on_cpu<at::_ops::polygamma_out>(n, self, out);
    at::native::resize_output(out, self.sizes());
    if (out.numel() > 0) pointwise_into({out}, "y0 = trigamma(x0)", {self});
    return out;
}

at::Tensor& round_decimals_out(const at::Tensor& self, std::int64_t decimals, at::Tensor& out) {
    if (at::isIntegralType(self.scalar_type(), true)) return at::round_out(out, self);
    at::native::resize_output(out, self.sizes());
    const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
    const char* const code =
        decimals >= 0 ? "y0 = round(x0 * p0) / p0" : "y0 = round(x0 / p0) * p0";
    if (out.numel() > 0) pointwise_into({out}, code, {self}, {power});
    return out;
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
    TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(),
                "D and ", other.dim(), "D tensors");
    TORCH_CHECK(self.scalar_type() == other.scalar_type(),
                "dot : expected both vectors to have same dtype, but found ", self.scalar_type(),
                " and ", other.scalar_type());
    TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [",
                self.numel(), "] and src [", other.numel(),
                "] to have the same number of elements, but got ", self.numel(), " and ",
                other.numel(), " elements respectively");
    if (!has_dtype(self.scalar_type())) return on_cpu<at::_ops::dot>(self, other);
    const c10::DeviceGuard guard(self.device());
    at::Tensor out = at::zeros({}, self.options());
    if (self.numel() > 0) pointwise_into({out}, "y0 = sum[](x0 * x1)", {self, other}, {}, false);
    return out;
}

at::Tensor& cross_out(const at::Tensor& self, const at::Tensor& other, std::int64_t dim,
                      at::Tensor& out) {
    const std::vector<std::int64_t> sizes = at::infer_size(self.sizes(), other.sizes());
    at::native::resize_output(out, sizes);
    if (out.numel() == 0) return out;
    const auto parts = [&](const at::Tensor& whole) { return whole.expand(sizes).unbind(dim); };
    std::vector<at::Tensor> inputs = parts(self);
    for (const at::Tensor& part : parts(other)) inputs.push_back(part);
    pointwise_into(out.unbind(dim),
                   "y0 = x1 * x5 - x2 * x4; y1 = x2 * x3 - x0 * x5; y2 = x0 * x4 - x1 * x3",
                   inputs);
    return out;
}

/// Waits, since the answer is one of the host.
bool equal(const at::Tensor& self, const at::Tensor& other) {
    return self.sizes() == other.sizes() && self.eq(other).all().item<bool>();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("count_nonzero.dim_IntList", count_nonzero);
    m.impl("trace", trace);
    m.impl("polygamma.out", polygamma_out);
    m.impl("dot", dot);
    m.impl("linalg_cross.out", cross_out);
    m.impl("equal", equal);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
    m.impl("round.decimals_out", round_decimals_out);
}

}  // namespace
}  // namespace dlprim_torch
