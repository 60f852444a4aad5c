// SPDX-License-Identifier: MIT
// Reading and checking the options of TransposedConvolution2D.
#include "ops/transposed_conv2d/options.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::transposed_conv2d {

namespace {

std::array<std::int64_t, 2> pair_of(const Attrs& attrs, const char* name) {
    const Ints given = attrs.ints(name);
    require(given.size() == 1 || given.size() == 2, name,
            " must be one integer or [height, width], not a list of ", given.size());
    return {given.front(), given.back()};
}

}  // namespace

TransposedOptions TransposedOptions::read(const Attrs& attrs) {
    TransposedOptions options;
    options.channels_out = attrs.integer("channels_out");
    options.channels_in = attrs.integer("channels_in");
    options.groups = attrs.integer("groups");
    options.bias = attrs.boolean("bias");
    options.kernel = pair_of(attrs, "kernel");
    options.stride = pair_of(attrs, "stride");
    options.dilate = pair_of(attrs, "dilate");
    options.output_pad = pair_of(attrs, "output_pad");
    for (std::size_t i = 0; i < 2; ++i)
        require(options.output_pad[i] < std::max(options.stride[i], options.dilate[i]),
                "output_pad ", options.output_pad[i], " must be less than stride ",
                options.stride[i], " or dilate ", options.dilate[i]);
    const Ints pad = attrs.ints("pad");
    require(
        pad.size() == 1 || pad.size() == 2 || pad.size() == 4,
        "pad must be one integer, [height, width] or [top, left, bottom, right], not a list of ",
        pad.size());
    for (std::size_t i = 0; i < 4; ++i) options.pad[i] = pad[i % pad.size()];
    options.activation = attrs.text("activation");
    return options;
}

std::int64_t TransposedOptions::output_size(std::int64_t size, int dim) const {
    const auto d = static_cast<std::size_t>(dim);
    return (size - 1) * stride[d] - pad[d] - pad[d + 2] + dilate[d] * (kernel[d] - 1) +
           output_pad[d] + 1;
}

}  // namespace dlprim::transposed_conv2d
