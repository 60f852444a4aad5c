// SPDX-License-Identifier: MIT
// Sums, products and extremes of each line up to every element.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/literal.hpp"
#include "ops/overloads.hpp"

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

template <Literal method, auto check>
at::Tensor& running_out(const at::Tensor& self, std::int64_t dim, Type dtype, at::Tensor& out) {
    check(out, self, dim, dtype);
    scan_into(out, self, dim, method.text);
    return out;
}

/// PyTorch has given the results their sizes, and has served what has no dimensions or elements.
template <Literal method>
void running_extremes(const at::Tensor& self, at::Tensor& values, at::Tensor& indices,
                      std::int64_t dim) {
    call_into({values, indices},
              dp::ops::Scan{.method = method.text, .dim = at::maybe_wrap_dim(dim, self.dim())},
              {view_of(self)});
}

at::Tensor& logcumsumexp_out(const at::Tensor& self, std::int64_t dim, at::Tensor& out) {
    at::native::resize_output(out, self.sizes());
    scan_into(out, self, dim, "logsumexp");
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("cumsum.out", running_out<"sum", at::meta::cumsum_out>);
    served.impl("cumprod.out", running_out<"prod", at::meta::cumprod_out>);
    served.impl("_cummax_helper", running_extremes<"max">);
    served.impl("_cummin_helper", running_extremes<"min">);
    served.impl("_logcumsumexp", into_new<logcumsumexp_out>);
    served.impl("_logcumsumexp.out", logcumsumexp_out);
}

}  // namespace
}  // namespace dlprim_torch
