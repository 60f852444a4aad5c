// SPDX-License-Identifier: MIT
// Sums, means, products and extremes of segments that lie one behind the other along a dimension.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <limits>
#include <optional>

namespace dlprim_torch {
namespace {

using Initial = std::optional<at::Scalar>;

struct Segments {
    at::Tensor of_element;  ///< int64, of the data's shape; `number` where there is no segment
    at::Tensor lengths;     ///< of the result's type, with the result's number of dimensions
    std::int64_t axis, number;

    /// Combines all elements of each segment with what `start` has for it.
    at::Tensor combined(const at::Tensor& data, const at::Scalar& start, const char* how) const {
        std::vector<std::int64_t> sizes = data.sizes().vec();
        sizes[static_cast<std::size_t>(axis)] = number + 1;
        return at::full(sizes, start, data.options())
            .scatter_reduce(axis, of_element, data, how)
            .narrow(axis, 0, number);
    }
    /// For each element what its segment has; 0 where there is none.
    at::Tensor spread(const at::Tensor& values) const {
        std::vector<std::int64_t> sizes = values.sizes().vec();
        sizes[static_cast<std::size_t>(axis)] = 1;
        return at::cat({values, at::zeros(sizes, values.options())}, axis).gather(axis, of_element);
    }
};

Segments segments_of(const at::Tensor& data, const Maybe& lengths, const Maybe& offsets,
                     std::int64_t axis) {
    const bool by_length = defined(lengths);
    TORCH_CHECK(by_length || defined(offsets),
                "segment_reduce(): Either lengths or offsets must be defined.");
    const at::Tensor bounds = (by_length ? *lengths : *offsets).to(at::kLong);
    TORCH_CHECK(bounds.dim() == axis + 1,
                "segment_reduce(): lengths and offsets have the dimensions of data up to axis.");
    const std::int64_t number = bounds.size(axis) - (by_length ? 0 : 1);
    const at::Tensor ends = by_length ? bounds.cumsum(axis) : bounds.narrow(axis, 1, number);
    const at::Tensor counts = by_length ? bounds : ends.sub(bounds.narrow(axis, 0, number));
    std::vector<std::int64_t> sizes(data.sizes().begin(), data.sizes().begin() + axis + 1);
    at::Tensor places = count_below(
        ends, at::arange(data.size(axis), bounds.options()).expand(sizes).contiguous(), true);
    if (!by_length) {
        const at::Tensor first = bounds.narrow(axis, 0, 1);
        const std::string place = "index(" + std::to_string(axis) + ")";
        const at::Tensor inside = at::empty_like(places);
        pointwise_into({inside}, "y0 = " + place + " < x1 ? p0 : x0", {places, first},
                       Scalars{dp::Scalar(number)});
        places = inside;
    }
    at::Tensor shaped = counts.to(data.scalar_type());
    for (std::int64_t d = axis + 1; d < data.dim(); ++d) {
        places = places.unsqueeze(-1);
        shaped = shaped.unsqueeze(-1);
    }
    return {places.expand(data.sizes()), shaped, axis, number};
}

bool serves_data(const at::Tensor& data, std::int64_t axis) {
    return serves(data) && data.is_floating_point() && data.numel() > 0 && axis >= 0;
}

at::Tensor segment_reduce(const at::Tensor& data, std::string_view reduce, const Maybe& lengths,
                          const Maybe& indices, const Maybe& offsets, std::int64_t axis,
                          bool unsafe, const Initial& initial) {
    if (!serves_data(data, axis))
        return on_cpu<at::_ops::segment_reduce>(data, reduce, lengths, indices, offsets, axis,
                                                unsafe, initial);
    const c10::DeviceGuard guard(data.device());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Segments segments = segments_of(data, lengths, offsets, axis);
    const auto from = [&](double start) { return initial.value_or(at::Scalar(start)); };
    if (reduce == "max") return segments.combined(data, from(-infinity), "amax");
    if (reduce == "min") return segments.combined(data, from(infinity), "amin");
    if (reduce == "prod") return segments.combined(data, from(1), "prod");
    const at::Tensor sum = segments.combined(data, from(0), "sum");
    if (reduce == "sum") return sum.contiguous();
    TORCH_CHECK(reduce == "mean", "segment_reduce(): unsupported reduction ", reduce);
    // The mean of nothing is NaN, unless there is an initial value.
    return sum / (initial ? segments.lengths.clamp_min(1) : segments.lengths);
}

/// Where one element of a segment is 0, it alone has a gradient: the product of the others.
at::Tensor product_gradient(const Segments& segments, const at::Tensor& grad,
                            const at::Tensor& data, const at::Scalar& start) {
    const at::Tensor is_zero = data.eq(0);
    const at::Tensor zeros = segments.combined(is_zero.to(data.scalar_type()), 0, "sum");
    const at::Tensor others = segments.combined(at::where(is_zero, 1, data), start, "prod");
    const at::Tensor made = at::empty(data.sizes(), data.options());
    pointwise_into({made}, "y0 = x0 == 0 ? (x1 == 1 ? x2 * x3 : 0) : x1 == 0 ? x2 * (x3 / x0) : 0",
                   {data, segments.spread(zeros), segments.spread(grad), segments.spread(others)});
    return made;
}

at::Tensor segment_reduce_backward(const at::Tensor& grad, const at::Tensor& output,
                                   const at::Tensor& data, std::string_view reduce,
                                   const Maybe& lengths, const Maybe& offsets, std::int64_t axis,
                                   const Initial& initial) {
    if (!serves_data(data, axis))
        return on_cpu<at::_ops::_segment_reduce_backward>(grad, output, data, reduce, lengths,
                                                          offsets, axis, initial);
    const c10::DeviceGuard guard(data.device());
    const Segments segments = segments_of(data, lengths, offsets, axis);
    if (reduce == "sum") return segments.spread(grad);
    if (reduce == "mean") return segments.spread(grad / segments.lengths.clamp_min(1));
    if (reduce == "prod")
        return product_gradient(segments, grad, data, initial.value_or(at::Scalar(1)));
    // Extremes that are equal share the gradient.
    const at::Tensor is_best = data.eq(segments.spread(output)).logical_or(data.isnan());
    const at::Tensor count = segments.combined(is_best.to(data.scalar_type()), 0, "sum");
    return at::where(is_best, segments.spread(grad / count.clamp_min(1)), 0);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("segment_reduce", segment_reduce);
    m.impl("_segment_reduce_backward", segment_reduce_backward);
}

}  // namespace
}  // namespace dlprim_torch
