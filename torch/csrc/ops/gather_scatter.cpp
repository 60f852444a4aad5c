// SPDX-License-Identifier: MIT
// Single elements that an index of the same rank names: gather, and all kinds of scatter.
//
// Updates come in the order of the index: sums have the same bits in every run. An index out of
// range, or below 0, is found by the kernel, and raised when the program next waits.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

namespace dlprim_torch {
namespace {

at::Tensor& gather_out(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                       bool sparse_grad, at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::gather_out>(self, dim, index, sparse_grad, out);
    at::meta::gather_out(out, self, dim, index, sparse_grad);
    if (out.numel() == 0) return out;
    TORCH_CHECK_INDEX(self.numel() > 0, "gather(): the index names elements of an empty tensor");
    call_into(
        {as_line(out)},
        dp::ops::Gather{
            .mode = "elements", .dim = at::maybe_wrap_dim(dim, self.dim()), .from_end = false},
        {view_of(as_line(self)), view_of(as_line(index))});
    return out;
}

/// Changes the elements of `self` that `index` names. `source` may be larger than the index.
void scatter_into(const at::Tensor& out, const at::Tensor& self, std::int64_t dim,
                  const at::Tensor& index, const at::Tensor& source,
                  const dp::ops::Scatter& how = {}) {
    if (self.numel() == 0 || index.numel() == 0) return keep(out, self);
    const at::Tensor named = as_line(index);
    at::Tensor updates = as_line(source);
    for (std::int64_t d = 0; d < named.dim(); ++d) updates = updates.narrow(d, 0, named.size(d));
    dp::ops::Scatter options = how;
    options.mode = "elements";
    options.dim = at::maybe_wrap_dim(dim, self.dim());
    options.from_end = false;
    call_into({as_line(out)}, options, {view_of(as_line(self)), view_of(named), view_of(updates)});
}

/// A number as updates for all that the index names.
at::Tensor updates_of(const at::Scalar& value, const at::Tensor& self, const at::Tensor& index) {
    const c10::DeviceGuard guard(self.device());
    return at::scalar_tensor(value, self.options()).expand(index.sizes());
}

/// PyTorch's older names of reductions: "add" and "multiply".
dp::ops::Scatter older(std::string_view reduce) {
    return {.reduction = reduce == "multiply" ? "mul" : "add"};
}

at::Tensor& scatter_src(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                        const at::Tensor& src, at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::scatter_src_out>(self, dim, index, src, out);
    at::meta::scatter_out(out, self, dim, index, src);
    scatter_into(out, self, dim, index, src);
    return out;
}

at::Tensor& scatter_value(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                          const at::Scalar& value, at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::scatter_value_out>(self, dim, index, value, out);
    at::meta::scatter_out(out, self, dim, index, value);
    scatter_into(out, self, dim, index, updates_of(value, self, index));
    return out;
}

at::Tensor& scatter_reduce_src(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                               const at::Tensor& src, std::string_view reduce, at::Tensor& out) {
    if (!serves(self))
        return on_cpu<at::_ops::scatter_reduce_out>(self, dim, index, src, reduce, out);
    at::meta::scatter_out(out, self, dim, index, src, reduce);
    scatter_into(out, self, dim, index, src, older(reduce));
    return out;
}

at::Tensor& scatter_reduce_value(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                                 const at::Scalar& value, std::string_view reduce,
                                 at::Tensor& out) {
    if (!serves(self))
        return on_cpu<at::_ops::scatter_value_reduce_out>(self, dim, index, value, reduce, out);
    at::meta::scatter_out(out, self, dim, index, value, reduce);
    scatter_into(out, self, dim, index, updates_of(value, self, index), older(reduce));
    return out;
}

at::Tensor& scatter_add(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                        const at::Tensor& src, at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::scatter_add_out>(self, dim, index, src, out);
    at::meta::scatter_add_out(out, self, dim, index, src);
    scatter_into(out, self, dim, index, src, {.reduction = "add"});
    return out;
}

at::Tensor& scatter_reduce_two(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                               const at::Tensor& src, std::string_view reduce, bool include_self,
                               at::Tensor& out) {
    if (!serves(self))
        return on_cpu<at::_ops::scatter_reduce_two_out>(self, dim, index, src, reduce, include_self,
                                                        out);
    at::meta::scatter_reduce_out(out, self, dim, index, src, reduce, include_self);
    const std::string name = reduce == "sum"    ? "add"
                             : reduce == "prod" ? "mul"
                             : reduce == "mean" ? "mean"
                             : reduce == "amax" ? "max"
                                                : "min";
    scatter_into(out, self, dim, index, src, {.reduction = name, .include_self = include_self});
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("gather.out", gather_out);
    m.impl("scatter.src_out", scatter_src);
    m.impl("scatter.value_out", scatter_value);
    m.impl("scatter.reduce_out", scatter_reduce_src);
    m.impl("scatter.value_reduce_out", scatter_reduce_value);
    m.impl("scatter_add.out", scatter_add);
    m.impl("scatter_reduce.two_out", scatter_reduce_two);
}

}  // namespace
}  // namespace dlprim_torch
