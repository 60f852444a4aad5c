// SPDX-License-Identifier: MIT
// Windows: reads and checks the options of pooling.
#include "ops/pooling/windows.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"
#include "graph/image_options.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::pooling {

namespace {

/// The shape of x.
Shape input_shape(const Problem& problem) {
    return (problem.op == backward_type ? problem.outputs : problem.inputs)[0].shape;
}

Range range_of(const Windows& w, const Axis& a, std::int64_t o) {
    if (w.adaptive) {
        const std::int64_t begin = o * a.in / a.out, end = ((o + 1) * a.in + a.out - 1) / a.out;
        return {begin, begin, end, 1, end - begin};
    }
    const std::int64_t first = o * a.stride - a.pad, last = first + (a.kernel - 1) * a.dilate + 1;
    const std::int64_t skipped = first < 0 ? (-first + a.dilate - 1) / a.dilate * a.dilate : 0;
    const std::int64_t begin = first + skipped, end = std::min(last, a.in);
    const std::int64_t counted =
        w.count_include_pad ? std::min(last, a.in + a.pad_end) - first : end - begin;
    return {first, begin, end, a.dilate,
            std::max<std::int64_t>(counted + a.dilate - 1, 0) / a.dilate};
}

}  // namespace

Ranges ranges_of(const Windows& windows) {
    Ranges ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i)
        for (std::int64_t o = 0; o < windows.axes[i].out; ++o)
            ranges[i].push_back(range_of(windows, windows.axes[i], o));
    return ranges;
}

Windows::Windows(const Problem& problem) : Windows(problem.attrs, input_shape(problem)) {}

Windows::Windows(const Attrs& attrs, const Shape& x)
    : average(attrs.text("mode") == "avg"),
      positions(chosen<Positions, &ops::Pooling::positions>(attrs)),
      dims(dims_of_images(x)) {
    const bool global = attrs.has("global") && attrs.boolean("global");
    const bool parts = !attrs.ints("output").empty(), window = !attrs.ints("kernel").empty();
    require(window || parts || global, "option 'kernel' is missing");
    require(window + parts + global == 1, "kernel, output and global exclude each other");
    adaptive = parts || global;
    planes = x[0] * x[1];
    const std::size_t first = axes.size() - static_cast<std::size_t>(dims);
    const Ints wanted = parts ? sizes_of_dims(attrs, "output", dims) : Ints(axes.size(), 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i) {
        Axis& axis = axes[first + i];
        axis.in = x[static_cast<int>(i) + 2];
        require(axis.in <= std::numeric_limits<std::int32_t>::max(), "input ", x,
                " has a dimension above 2^31 - 1");
        require(axis.in > 0 || global, "input ", x, " has images without elements");
        axis.out = wanted[i] < 0 ? axis.in : wanted[i];
    }
    if (window) read_fixed(attrs, x);
    output = x;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i)
        output = output.with(static_cast<int>(i) + 2, axes[first + i].out);
}

void Windows::read_fixed(const Attrs& attrs, const Shape& x) {
    const bool ceil_mode = attrs.boolean("ceil_mode");
    count_include_pad = attrs.boolean("count_include_pad");
    divisor = attrs.integer("divisor_override");
    const Ints kernel = sizes_of_dims(attrs, "kernel", dims),
               stride = sizes_of_dims(attrs, "stride", dims),
               dilate = sizes_of_dims(attrs, "dilate", dims);
    const Ints given = attrs.ints("pad");
    const bool two_sided = given.size() == 2 * static_cast<std::size_t>(dims);
    const Ints pad = two_sided ? given : sizes_of_dims(attrs, "pad", dims);
    for (std::size_t i = 0; i < kernel.size(); ++i) {
        Axis& a = axes[axes.size() - kernel.size() + i];
        a = {a.in,     1, kernel[i], stride[i], pad[i], pad[two_sided ? i + kernel.size() : i],
             dilate[i]};
        const std::int64_t span = a.dilate * (a.kernel - 1) + 1;
        for (const std::int64_t p : {a.pad, a.pad_end})
            require(p < span, "pad ", p, " must be less than the window, ", span);
        const std::int64_t room = a.in + a.pad + a.pad_end - span;
        require(room >= 0, "a window of ", span, " does not fit padded input ", x);
        a.out = (room + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
        // With ceil_mode, the last window must start inside the input or the padding before it.
        if (ceil_mode && (a.out - 1) * a.stride >= a.in + a.pad) --a.out;
    }
}

bool Windows::is_plain() const {
    return dims == 2 && !adaptive && divisor == 0 && h().dilate == 1 && w().dilate == 1;
}

DType Windows::index_type(Positions in) const {
    if (in == Positions::image) return DType::i64;
    return h().kernel * w().kernel <= 256 ? DType::u8 : DType::i32;
}

}  // namespace dlprim::pooling
