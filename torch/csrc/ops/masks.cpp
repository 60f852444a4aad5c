// SPDX-License-Identifier: MIT
// Elements that a mask chooses, and the places of those that are not 0. A result whose size depends
// on values waits once, for that number.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <ATen/ExpandUtils.h>
#include <dlprim/selection.hpp>

namespace dlprim_torch {
namespace {

at::Tensor checked_mask(const char* name, const at::Tensor& mask) {
    TORCH_CHECK(mask.scalar_type() == at::kBool || mask.scalar_type() == at::kByte, name,
                ": expected BoolTensor or ByteTensor for mask");
    return mask.scalar_type() == at::kBool ? mask : mask.to(at::kBool);
}

dp::Tensor selected(const at::Tensor& self, const at::Tensor& mask) {
    const dp::Tensor x = plain_of(self), m = plain_of(checked_mask("masked_select", mask));
    return translated([&] { return dp::ops::masked_select(x, m); });
}

bool has_elements(const at::Tensor& self, const at::Tensor& mask) {
    return c10::multiply_integers(at::infer_size(self.sizes(), mask.sizes())) > 0;
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
    const c10::DeviceGuard guard(self.device());
    if (!has_elements(self, mask)) return at::empty({0}, self.options());
    return new_tensor(selected(self, mask), self.device());
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
    TORCH_CHECK(self.scalar_type() == out.scalar_type(),
                "masked_select(): self and result must have the same scalar type");
    if (!has_elements(self, mask)) {
        at::native::resize_output(out, {0});
        return out;
    }
    const dp::Tensor made = selected(self, mask);
    at::native::resize_output(out, {made.shape().numel()});
    give(out, made);
    return out;
}

at::Tensor& masked_scatter(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
    TORCH_CHECK(self.scalar_type() == source.scalar_type(),
                "masked_scatter: expected self and source to have same dtypes but got",
                self.scalar_type(), " and ", source.scalar_type());
    TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "The mask of shape ",
                mask.sizes(), " cannot be broadcast to shape ", self.sizes(), ".");
    if (self.numel() == 0) return self;
    const dp::Tensor x = plain_of(self), m = plain_of(checked_mask("masked_scatter_", mask)),
                     values = plain_of(source.reshape({-1}));
    give(self, translated([&] { return dp::ops::masked_scatter(x, m, values); }));
    return self;
}

/// The single row of a number that is not 0 has no coordinates.
dp::Tensor places(const at::Tensor& self) {
    const dp::Tensor x = plain_of(self);
    return translated([&] { return dp::ops::nonzero(x); });
}

at::Tensor nonzero(const at::Tensor& self) {
    const c10::DeviceGuard guard(self.device());
    const at::TensorOptions options = self.options().dtype(at::kLong);
    if (self.dim() == 0) return at::empty({self.ne(0).item<bool>() ? 1 : 0, 0}, options);
    if (self.numel() == 0) return at::empty({0, self.dim()}, options);
    return new_tensor(places(self), self.device());
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
    TORCH_CHECK(out.scalar_type() == at::kLong,
                "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
                out.scalar_type());
    bring(out, at::nonzero(self));
    return out;
}

at::Tensor& nonzero_static_out(const at::Tensor& self, c10::SymInt size, std::int64_t fill,
                               at::Tensor& out) {
    const std::int64_t rows = size.expect_int();
    TORCH_CHECK(rows >= 0, "nonzero_static: 'size' must be an non-negative integer");
    TORCH_CHECK(out.scalar_type() == at::kLong,
                "nonzero_static: Expected out tensor to have scalar type Long but got scalar type ",
                out.scalar_type());
    at::native::resize_output(out, {rows, self.dim()});
    if (out.numel() == 0) return out;
    if (self.numel() == 0) return out.fill_(fill);
    give(out, results_of(dp::ops::Nonzero{.size = rows, .fill = fill}, {view_of(self)})[0]);
    return out;
}

at::Tensor nonzero_static(const at::Tensor& self, c10::SymInt size, std::int64_t fill) {
    const c10::DeviceGuard guard(self.device());
    at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
    return nonzero_static_out(self, std::move(size), fill, out);
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("masked_select", masked_select);
    served.impl("masked_select.out", masked_select_out, Overlap::none);
    served.impl("masked_scatter_", masked_scatter, Overlap::any);
    served.impl("nonzero", nonzero);
    served.impl("nonzero.out", nonzero_out, Overlap::none);
    served.impl("nonzero_static", nonzero_static);
    served.impl("nonzero_static.out", nonzero_static_out);
}

}  // namespace
}  // namespace dlprim_torch
