// SPDX-License-Identifier: MIT
// Sums, products and extremes of each line up to every element.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <optional>

namespace dlprim_torch {
namespace {

void scan_into(const at::Tensor& out, const at::Tensor& self, std::int64_t dim,
               const char* method) {
    if (out.numel() == 0) return;
    if (self.dim() == 0) {
        out.copy_(self);
        return;
    }
    dp::ops::Scan options{.method = method, .dim = at::maybe_wrap_dim(dim, self.dim())};
    const bool whole = at::isIntegralType(self.scalar_type(), true) &&
                       at::isIntegralType(out.scalar_type(), false);
    if (whole) options.dtype = dtype_of(out.scalar_type());
    call_into({out}, options, {view_of(whole ? self : self.to(out.scalar_type()))});
}

using Type = std::optional<at::ScalarType>;

at::Tensor& cumsum_out(const at::Tensor& self, std::int64_t dim, Type dtype, at::Tensor& out) {
    if (!serves(self) || !serves(out)) return on_cpu<at::_ops::cumsum_out>(self, dim, dtype, out);
    at::meta::cumsum_out(out, self, dim, dtype);
    scan_into(out, self, dim, "sum");
    return out;
}

at::Tensor& cumprod_out(const at::Tensor& self, std::int64_t dim, Type dtype, at::Tensor& out) {
    if (!serves(self) || !serves(out)) return on_cpu<at::_ops::cumprod_out>(self, dim, dtype, out);
    at::meta::cumprod_out(out, self, dim, dtype);
    scan_into(out, self, dim, "prod");
    return out;
}

/// PyTorch has given the results their sizes, and has served what has no dimensions or elements.
void cummax(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, std::int64_t dim) {
    if (!serves(self)) return on_cpu<at::_ops::_cummax_helper>(self, values, indices, dim);
    call_into({values, indices},
              dp::ops::Scan{.method = "max", .dim = at::maybe_wrap_dim(dim, self.dim())},
              {view_of(self)});
}

void cummin(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, std::int64_t dim) {
    if (!serves(self)) return on_cpu<at::_ops::_cummin_helper>(self, values, indices, dim);
    call_into({values, indices},
              dp::ops::Scan{.method = "min", .dim = at::maybe_wrap_dim(dim, self.dim())},
              {view_of(self)});
}

at::Tensor& logcumsumexp_out(const at::Tensor& self, std::int64_t dim, at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::_logcumsumexp_out>(self, dim, out);
    at::native::resize_output(out, self.sizes());
    scan_into(out, self, dim, "logsumexp");
    return out;
}

at::Tensor logcumsumexp(const at::Tensor& self, std::int64_t dim) {
    const c10::DeviceGuard guard(self.device());
    at::Tensor out = at::empty(self.sizes(), self.options());
    return logcumsumexp_out(self, dim, out);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("cumsum.out", cumsum_out);
    m.impl("cumprod.out", cumprod_out);
    m.impl("_cummax_helper", cummax);
    m.impl("_cummin_helper", cummin);
    m.impl("_logcumsumexp", logcumsumexp);
    m.impl("_logcumsumexp.out", logcumsumexp_out);
}

}  // namespace
}  // namespace dlprim_torch
