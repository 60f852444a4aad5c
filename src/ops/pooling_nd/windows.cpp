// SPDX-License-Identifier: MIT
// Windows: reads and checks the options of PoolingND and AdaptivePooling.
#include "ops/pooling_nd/windows.hpp"

#include "base/text.hpp"

#include <limits>

namespace dlprim::pooling_nd {

namespace {

/// One size for each of `dims` dimensions, from one or `dims` entries.
Ints sizes(const Attrs& attrs, const char* name, int dims) {
    Ints given = attrs.ints(name);
    require(given.size() == 1 || given.size() == static_cast<std::size_t>(dims), name, " has ",
            given.size(), " entries; it is one size or one for each of the ", dims,
            " dimensions of images");
    if (given.size() == 1) given.resize(static_cast<std::size_t>(dims), given[0]);
    return given;
}

}  // namespace

Windows::Windows(const Attrs& attrs, const Shape& x, bool is_adaptive) : adaptive(is_adaptive) {
    require(x.rank() >= 3 && x.rank() <= 5, "input ", x.str(),
            " is not [N, C, ...] with one to three dimensions of images");
    average = attrs.text("mode") == "avg";
    indices = attrs.boolean("return_indices");
    require(!(average && indices), "return_indices goes with mode max only");
    planes = x[0] * x[1];
    for (int i = 2; i < x.rank(); ++i) {
        require(x[i] <= std::numeric_limits<std::int32_t>::max(), "input ", x.str(),
                " has a dimension above 2^31 - 1");
        axes[static_cast<std::size_t>(3 - x.rank() + i)].in = x[i];
    }
    if (adaptive)
        read_adaptive(attrs, x);
    else
        read_fixed(attrs, x);
    std::vector<std::int64_t> made{x[0], x[1]};
    for (int i = 2; i < x.rank(); ++i)
        made.push_back(axes[static_cast<std::size_t>(3 - x.rank() + i)].out);
    output = Shape(made);
}

void Windows::read_fixed(const Attrs& attrs, const Shape& x) {
    const int dims = x.rank() - 2;
    const bool ceil_mode = attrs.boolean("ceil_mode");
    count_include_pad = attrs.boolean("count_include_pad");
    divisor = attrs.integer("divisor_override");
    const Ints kernel = sizes(attrs, "kernel", dims), stride = sizes(attrs, "stride", dims),
               dilate = sizes(attrs, "dilate", dims);
    const Ints given = attrs.ints("pad");
    const bool two_sided = given.size() == static_cast<std::size_t>(2 * dims);
    const Ints pad = two_sided ? given : sizes(attrs, "pad", dims);
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i) {
        Axis& a = axes[3 - static_cast<std::size_t>(dims) + i];
        a = {a.in,     1, kernel[i], stride[i], pad[i], pad[two_sided ? i + kernel.size() : i],
             dilate[i]};
        for (const std::int64_t p : {a.pad, a.pad_end})
            require(p < a.kernel, "pad ", p, " must be less than the kernel, ", a.kernel);
        require(!average || a.dilate == 1, "dilate goes with mode max only");
        const std::int64_t room = a.in + a.pad + a.pad_end - a.dilate * (a.kernel - 1) - 1;
        require(room >= 0 && a.in > 0, "a window of ", a.dilate * (a.kernel - 1) + 1,
                " does not fit padded input ", x.str());
        a.out = (room + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
        // With ceil_mode, the last window must start inside the input or the padding before it.
        if (ceil_mode && (a.out - 1) * a.stride >= a.in + a.pad) --a.out;
    }
}

void Windows::read_adaptive(const Attrs& attrs, const Shape& x) {
    const int dims = x.rank() - 2;
    const Ints wanted = sizes(attrs, "output", dims);
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i) {
        Axis& a = axes[3 - static_cast<std::size_t>(dims) + i];
        require(a.in > 0, "input ", x.str(), " has images without elements");
        a.out = wanted[i] < 0 ? a.in : wanted[i];
    }
}

}  // namespace dlprim::pooling_nd
