// SPDX-License-Identifier: MIT
// Lines in order, and the first of them. Equal values keep their order, and NaNs are larger than
// all numbers.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

/// Of a number, which is in order.
void single_into(const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self) {
    values.copy_(self);
    indices.zero_();
}

std::tuple<at::Tensor&, at::Tensor&> sort_out(const at::Tensor& self, std::optional<bool> stable,
                                              std::int64_t dim, bool descending, at::Tensor& values,
                                              at::Tensor& indices) {
    at::meta::sort_out(values, indices, self, stable, dim, descending);
    if (values.numel() == 0) return {values, indices};
    if (self.dim() == 0)
        single_into(values, indices, self);
    else
        call_into(
            {values, indices},
            dp::ops::Sort{.dim = at::maybe_wrap_dim(dim, self.dim()), .descending = descending},
            {view_of(self)});
    return {values, indices};
}

std::tuple<at::Tensor&, at::Tensor&> topk_out(const at::Tensor& self, c10::SymInt k,
                                              std::int64_t dim, bool largest, bool sorted,
                                              at::Tensor& values, at::Tensor& indices) {
    const std::int64_t count = k.expect_int();
    at::meta::topk_out(values, indices, self, count, dim, largest, sorted);
    if (values.numel() == 0) return {values, indices};
    if (self.dim() == 0)
        single_into(values, indices, self);
    else
        call_into({values, indices},
                  dp::ops::TopK{
                      .k = count, .dim = at::maybe_wrap_dim(dim, self.dim()), .largest = largest},
                  {view_of(self)});
    return {values, indices};
}

/// The element of each line's order that `rank` names, which has size 1 in dimension `axis`.
void ranked_into(const at::Tensor& values, const at::Tensor& indices, const at::Tensor& sorted,
                 const at::Tensor& positions, std::int64_t axis, const at::Tensor& rank) {
    values.copy_(sorted.gather(axis, rank).view(values.sizes()));
    indices.copy_(positions.gather(axis, rank).view(indices.sizes()));
}

std::tuple<at::Tensor&, at::Tensor&> kthvalue_out(const at::Tensor& self, c10::SymInt k,
                                                  std::int64_t dim, bool keep_dim,
                                                  at::Tensor& values, at::Tensor& indices) {
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim()), rank = k.expect_int();
    const std::int64_t length = self.dim() == 0 ? 1 : self.size(axis);
    TORCH_CHECK(rank >= 1 && rank <= length,
                "kthvalue(): selected number k out of range for dimension ", axis);
    const std::vector<std::int64_t> sizes = without(self.sizes(), axis, keep_dim);
    at::native::resize_output(values, sizes);
    at::native::resize_output(indices, sizes);
    if (values.numel() == 0) return {values, indices};
    if (self.dim() == 0) {
        single_into(values, indices, self);
        return {values, indices};
    }
    const auto [first, positions] = at::topk(self, rank, axis, false);
    values.copy_(first.select(axis, rank - 1).view(sizes));
    indices.copy_(positions.select(axis, rank - 1).view(sizes));
    return {values, indices};
}

/// Which element of each line in order is the median: the lower of two. A NaN among them is the
/// median, unless NaNs are left out.
at::Tensor rank_of_median(const at::Tensor& self, std::int64_t axis, bool leaves_nan) {
    const std::int64_t length = self.size(axis);
    std::vector<std::int64_t> sizes = without(self.sizes(), axis, true);
    const at::TensorOptions options = self.options().dtype(at::kLong);
    if (!self.is_floating_point()) return at::full(sizes, (length - 1) / 2, options);
    const at::Tensor nans = self.isnan().sum(axis, true);
    at::Tensor rank = at::empty(sizes, options);
    pointwise_into({rank},
                   leaves_nan ? "y0 = truncdiv(p0 - x0 - 1, 2)"
                              : "y0 = x0 > 0 ? p0 - x0 : truncdiv(p0 - 1, 2)",
                   {nans}, Scalars{dp::Scalar(length)});
    return rank;
}

void median_into(const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self,
                 std::int64_t axis, bool leaves_nan) {
    if (self.dim() == 0) return single_into(values, indices, self);
    const auto [sorted, positions] = at::sort(self, true, axis, false);
    ranked_into(values, indices, sorted, positions, axis, rank_of_median(self, axis, leaves_nan));
}

template <bool leaves_nan>
std::tuple<at::Tensor&, at::Tensor&> median_out(const at::Tensor& self, std::int64_t dim,
                                                bool keep_dim, at::Tensor& values,
                                                at::Tensor& indices) {
    const c10::DeviceGuard guard(self.device());
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    TORCH_CHECK_INDEX(self.dim() == 0 || self.size(axis) > 0, "median(): Expected reduction dim ",
                      axis, " to have non-zero size.");
    const std::vector<std::int64_t> sizes = without(self.sizes(), axis, keep_dim);
    at::native::resize_output(values, sizes);
    at::native::resize_output(indices, sizes);
    if (values.numel() > 0) median_into(values, indices, self, axis, leaves_nan);
    return {values, indices};
}

template <bool leaves_nan>
at::Tensor median(const at::Tensor& self) {
    const c10::DeviceGuard guard(self.device());
    const at::Tensor value = at::empty({}, self.options()),
                     index = at::empty({}, self.options().dtype(at::kLong));
    if (self.numel() == 0) return value.fill_(std::numeric_limits<double>::quiet_NaN());
    median_into(value, index, self.reshape({-1}), 0, leaves_nan);
    return value;
}

/// The value that a line has most often, the smallest of several, and its last position.
std::tuple<at::Tensor, at::Tensor> mode(const at::Tensor& self, std::int64_t dim, bool keep_dim) {
    const c10::DeviceGuard guard(self.device());
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    const std::vector<std::int64_t> sizes = without(self.sizes(), axis, keep_dim);
    at::Tensor values = at::empty(sizes, self.options()),
               indices = at::empty(sizes, self.options().dtype(at::kLong));
    if (values.numel() == 0) return {values, indices};
    TORCH_CHECK_INDEX(self.numel() > 0, "mode(): Expected reduction dim ", axis,
                      " to have non-zero size.");
    if (self.dim() == 0) {
        single_into(values, indices, self);
        return {values, indices};
    }
    const auto [sorted, positions] = at::sort(self, true, axis, false);
    const std::int64_t length = self.size(axis);
    // Where each run of equal values begins; elsewhere 0. Their running maximum says how long the
    // run up to an element is.
    const at::Tensor begins = at::zeros(self.sizes(), indices.options());
    const std::string place = "index(" + std::to_string(axis) + ")";
    if (length > 1)
        pointwise_into({begins.narrow(axis, 1, length - 1)},
                       "y0 = x0 != x1 ? " + place + " + 1 : 0",
                       {sorted.narrow(axis, 1, length - 1), sorted.narrow(axis, 0, length - 1)});
    const at::Tensor lengths = at::empty_like(begins);
    pointwise_into({lengths}, "y0 = " + place + " - x0", {std::get<0>(at::cummax(begins, axis))});
    ranked_into(values, indices, sorted, positions, axis, lengths.argmax(axis, true));
    return {values, indices};
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("sort.values_stable", sort_out);
    served.impl("topk.values", topk_out);
    served.impl("kthvalue.values", kthvalue_out);
    served.impl("median.dim_values", median_out<false>);
    served.impl("nanmedian.dim_values", median_out<true>);
    served.impl("median", median<false>);
    served.impl("nanmedian", median<true>);
    served.impl("mode", mode);
    served.impl("mode.values", into_outs<mode>);
}

}  // namespace
}  // namespace dlprim_torch
