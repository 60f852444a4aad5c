// SPDX-License-Identifier: MIT
// Operators that are a few others, or one program that no row can say.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>

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

at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
    if (self.is_complex()) return on_cpu<at::_ops::vdot>(self, other);
    return at::dot(self, other);
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

/// The sum of a batch of products is the product of matrices that lie side by side.
at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                       const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    TORCH_CHECK(batch1.dim() == 3 && batch2.dim() == 3,
                "batch1 and batch2 must be 3D tensors, not ", batch1.dim(), "D and ", batch2.dim(),
                "D");
    TORCH_CHECK(batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1), "batch1 ",
                batch1.sizes(), " and batch2 ", batch2.sizes(),
                " are not batches of matrices that can be multiplied");
    const std::int64_t rows = batch1.size(1), columns = batch2.size(2);
    const std::int64_t inner = batch1.size(0) * batch1.size(2);
    return at::addmm_out(out, self, batch1.transpose(0, 1).reshape({rows, inner}),
                         batch2.reshape({inner, columns}), beta, alpha);
}

at::Tensor& addbmm_in_place(at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                            const at::Scalar& beta, const at::Scalar& alpha) {
    return addbmm_out(self, batch1, batch2, beta, alpha, self);
}

/// Channels [groups * n] as [n * groups].
at::Tensor channel_shuffle(const at::Tensor& self, std::int64_t groups) {
    TORCH_CHECK(self.dim() > 2,
                "channel_shuffle expects input with > 2 dims, but got input with "
                "sizes ",
                self.sizes());
    TORCH_CHECK(groups > 0,
                "Number of groups to divide channels in must be positive. Value of "
                "groups:",
                groups);
    TORCH_CHECK(self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ",
                self.size(1), " channels and ", groups, " groups.");
    std::vector<std::int64_t> sizes = self.sizes().vec();
    sizes[1] = groups;
    sizes.insert(sizes.begin() + 2, self.size(1) / groups);
    return self.reshape(sizes).transpose(1, 2).reshape(self.sizes()).contiguous();
}

at::Tensor& narrow_copy_out(const at::Tensor& self, std::int64_t dim, std::int64_t start,
                            std::int64_t length, at::Tensor& out) {
    bring(out, self.narrow(dim, start, length));
    return out;
}

/// A tensor that stands for zeros without memory, which forward derivatives use.
at::Tensor efficient_zeros(c10::IntArrayRef size, std::optional<at::ScalarType> type,
                           std::optional<at::Layout>, std::optional<at::Device> device,
                           std::optional<bool>) {
    const at::Device place = at::device_or_default(device);
    at::native::ZeroTensorAllocator allocator(place);
    const auto keys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) |
                      c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
    return at::detail::empty_generic(size, &allocator, keys, at::dtype_or_default(type),
                                     std::nullopt);
}

/// Waits, since the answer is one of the host.
bool equal(const at::Tensor& self, const at::Tensor& other) {
    return self.sizes() == other.sizes() && self.eq(other).all().item<bool>();
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("count_nonzero.dim_IntList", count_nonzero);
    m.impl("trace", trace);
    m.impl("dot", dot);
    m.impl("vdot", vdot);
    m.impl("_efficientzerotensor", efficient_zeros);
    m.impl("mvlgamma.out", at::native::mvlgamma_out);
    m.impl("addbmm", into_new<addbmm_out>);
    m.impl("addbmm.out", addbmm_out);
    m.impl("addbmm_", addbmm_in_place);
    m.impl("channel_shuffle", channel_shuffle);
    m.impl("narrow_copy.out", narrow_copy_out);
    m.impl("linalg_cross.out", cross_out);
    m.impl("equal", equal);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
    m.impl("round.decimals_out", round_decimals_out);
}

}  // namespace
}  // namespace dlprim_torch
