// SPDX-License-Identifier: MIT
// Places of values in sorted lines, and whether they are among others.
//
// All values search at once: each step of the binary search is a gather of the elements in the
// middle and a program that moves the bounds, so that n elements take log2(n) + 1 steps.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/BucketizationUtils.h>

#include <optional>

namespace dlprim_torch {

namespace {

constexpr std::int64_t exact_in_float = std::int64_t{1} << 23;

}  // namespace

at::Tensor count_below(const at::Tensor& sorted, const at::Tensor& values, bool right) {
    const at::TensorOptions options = values.options().dtype(at::kLong);
    const std::int64_t length = sorted.size(-1);
    at::Tensor low = at::zeros(values.sizes(), options);
    if (values.numel() == 0 || length == 0) return low;
    // Programs on floats count in float, which holds no larger positions.
    if (length > exact_in_float && values.is_floating_point() &&
        values.scalar_type() != at::kDouble)
        return count_below(sorted.to(at::kDouble), values.to(at::kDouble), right);
    at::Tensor high = at::full(values.sizes(), length, options);
    at::Tensor middle = at::full(values.sizes(), length / 2, options);
    // Not "below", since a NaN that is searched for stops nowhere, as on the CPU.
    const std::string goes_on = right ? "!(x3 > x4)" : "!(x3 >= x4)";
    const std::string code = "o = x0 < x1; g = " + goes_on +
                             "; y0 = o && g ? x2 + 1 : x0; y1 = o && !g ? x2 : x1; "
                             "y2 = min(floordiv(y0 + y1, 2), p0)";
    for (std::int64_t left = length; left > 0; left /= 2) {
        const at::Tensor found =
            sorted.dim() == 1 ? sorted.index_select(0, middle.reshape({-1})).view(values.sizes())
                              : sorted.gather(-1, middle);
        const at::Tensor next_low = at::empty_like(low), next_high = at::empty_like(low),
                         next = at::empty_like(low);
        pointwise_into({next_low, next_high, next}, code, {low, high, middle, found, values},
                       Scalars{dp::Scalar(length - 1)});
        low = next_low;
        high = next_high;
        middle = next;
    }
    return low;
}

namespace {

using Sorter = std::optional<at::Tensor>;
using Side = std::optional<std::string_view>;

const at::Tensor& values_of(const at::Tensor& given, const at::Tensor&) {
    return given;
}

at::Tensor values_of(const at::Scalar& given, const at::Tensor& sequence) {
    return at::native::searchsorted_scalar_tensor(given, sequence.device());
}

/// `Given` is a tensor or a number.
template <typename Given>
at::Tensor& searchsorted_out(const at::Tensor& sequence, Given given, bool out_int32, bool right,
                             Side side, const Sorter& sorter, at::Tensor& out) {
    const at::Tensor self = values_of(given, sequence);
    const c10::DeviceGuard guard(self.device());
    const at::Tensor order = sorter.value_or(at::Tensor());
    at::native::searchsorted_pre_check(sequence, self, out, out_int32, right, side, order);
    at::native::resize_output(out, self.sizes());
    if (out.numel() == 0) return out;
    const at::ScalarType type = at::result_type(sequence, self);
    const at::Tensor lines = sequence.to(type);
    out.copy_(count_below(order.defined() ? lines.gather(-1, order) : lines, self.to(type),
                          right || (side && *side == "right")));
    return out;
}

template <typename Given>
at::Tensor searchsorted_new(const at::Tensor& sequence, Given given, bool out_int32, bool right,
                            Side side, const Sorter& sorter) {
    const c10::DeviceGuard guard(sequence.device());
    at::Tensor out = at::empty({0}, sequence.options().dtype(out_int32 ? at::kInt : at::kLong));
    return searchsorted_out<Given>(sequence, given, out_int32, right, side, sorter, out);
}

void check_boundaries(const at::Tensor& boundaries) {
    TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
                boundaries.dim(), ")");
}

at::Tensor& bucketize_out(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32,
                          bool right, at::Tensor& out) {
    check_boundaries(boundaries);
    return searchsorted_out<const at::Tensor&>(boundaries, self, out_int32, right, std::nullopt,
                                               std::nullopt, out);
}

template <typename Given>
at::Tensor bucketize_new(Given given, const at::Tensor& boundaries, bool out_int32, bool right) {
    check_boundaries(boundaries);
    return searchsorted_new<Given>(boundaries, given, out_int32, right, std::nullopt, std::nullopt);
}

/// How many elements to compare each one with rather than to sort them.
constexpr std::int64_t few = 64;

void isin_into(const at::Tensor& out, const at::Tensor& elements, const at::Tensor& others,
               bool invert) {
    if (out.numel() == 0) return;
    if (others.numel() == 0) {
        out.fill_(invert);
        return;
    }
    const at::ScalarType type = at::result_type(elements, others);
    const at::Tensor values = elements.to(type), set = others.to(type).reshape({-1});
    if (set.numel() <= few) {
        const at::Tensor whole = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
        pointwise_into({whole.view({-1})},
                       invert ? "y0 = min[1](x0 != x1)" : "y0 = max[1](x0 == x1)",
                       {values.reshape({-1, 1}), set.unsqueeze(0)}, {}, false);
        return keep(out, whole);
    }
    const at::Tensor sorted = std::get<0>(at::sort(set));
    const at::Tensor places = count_below(sorted, values, false).clamp_max(set.numel() - 1);
    const at::Tensor found = sorted.index_select(0, places.reshape({-1})).view(values.sizes());
    out.copy_(invert ? found.ne(values) : found.eq(values));
}

at::Tensor& isin_tensors(const at::Tensor& elements, const at::Tensor& others, bool unique,
                         bool invert, at::Tensor& out) {
    at::meta::isin_out(out, elements, others, unique, invert);
    isin_into(out, elements, others, invert);
    return out;
}

at::Tensor& isin_scalar(const at::Tensor& elements, const at::Scalar& other, bool unique,
                        bool invert, at::Tensor& out) {
    at::meta::isin_out(out, elements, other, unique, invert);
    return invert ? at::ne_out(out, elements, other) : at::eq_out(out, elements, other);
}

at::Tensor& scalar_isin(const at::Scalar& element, const at::Tensor& others, bool unique,
                        bool invert, at::Tensor& out) {
    at::meta::isin_out(out, element, others, unique, invert);
    at::native::resize_output(out, {});
    return out.copy_(invert ? others.ne(element).all() : others.eq(element).any());
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("searchsorted.Tensor", searchsorted_new<const at::Tensor&>);
    served.impl("searchsorted.Tensor_out", searchsorted_out<const at::Tensor&>);
    served.impl("searchsorted.Scalar", searchsorted_new<const at::Scalar&>);
    served.impl("searchsorted.Scalar_out", searchsorted_out<const at::Scalar&>);
    served.impl("bucketize.Tensor", bucketize_new<const at::Tensor&>);
    served.impl("bucketize.Tensor_out", bucketize_out);
    served.impl("bucketize.Scalar", bucketize_new<const at::Scalar&>);
    served.impl("isin.Tensor_Tensor_out", isin_tensors);
    m.impl("isin.Tensor_Scalar_out", isin_scalar);
    m.impl("isin.Scalar_Tensor_out", scalar_isin);
}

}  // namespace
}  // namespace dlprim_torch
