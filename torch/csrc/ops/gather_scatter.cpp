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

const at::Tensor& updates_of(const at::Tensor& source, const at::Tensor&, const at::Tensor&) {
    return source;
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

/// `Given` is a tensor or a number.
template <typename Given>
at::Tensor& scatter(const at::Tensor& self, std::int64_t dim, const at::Tensor& index, Given given,
                    at::Tensor& out) {
    at::meta::scatter_out(out, self, dim, index, given);
    scatter_into(out, self, dim, index, updates_of(given, self, index));
    return out;
}

template <typename Given>
at::Tensor& scatter_reduce(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                           Given given, std::string_view reduce, at::Tensor& out) {
    at::meta::scatter_out(out, self, dim, index, given, reduce);
    scatter_into(out, self, dim, index, updates_of(given, self, index), older(reduce));
    return out;
}

at::Tensor& scatter_add(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                        const at::Tensor& src, at::Tensor& out) {
    at::meta::scatter_add_out(out, self, dim, index, src);
    scatter_into(out, self, dim, index, src, {.reduction = "add"});
    return out;
}

at::Tensor& scatter_reduce_two(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                               const at::Tensor& src, std::string_view reduce, bool include_self,
                               at::Tensor& out) {
    at::meta::scatter_reduce_out(out, self, dim, index, src, reduce, include_self);
    scatter_into(out, self, dim, index, src,
                 {.reduction = name_of_reduction(reduce), .include_self = include_self});
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("gather.out", gather_out);
    served.impl("scatter.src_out", scatter<const at::Tensor&>);
    served.impl("scatter.value_out", scatter<const at::Scalar&>);
    served.impl("scatter.reduce_out", scatter_reduce<const at::Tensor&>);
    served.impl("scatter.value_reduce_out", scatter_reduce<const at::Scalar&>);
    served.impl("scatter_add.out", scatter_add);
    served.impl("scatter_reduce.two_out", scatter_reduce_two);
}

}  // namespace
}  // namespace dlprim_torch
