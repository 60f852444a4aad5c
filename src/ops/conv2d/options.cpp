// SPDX-License-Identifier: MIT
// Reading the options of convolutions.
#include "ops/conv2d/options.hpp"

#include <utility>

namespace dlprim::conv2d {

const char* const forward_type = "Convolution2D";
const char* const backward_data_type = "Convolution2DBackwardData";
const char* const backward_filter_type = "Convolution2DBackwardFilter";

Conv2dOptions Conv2dOptions::read(const Attrs& attrs) {
    const auto pair = [&](const char* name) {
        const Ints given = attrs.ints(name);
        return std::array{given.front(), given.back()};
    };
    Conv2dOptions options{
        attrs.integer("groups"), pair("kernel"), pair("stride"), {}, pair("dilate")};
    const Ints pad = attrs.ints("pad");
    for (std::size_t i = 0; i < 4; ++i) options.pad[i] = pad[i % pad.size()];
    return options;
}

std::int64_t Conv2dOptions::output_size(std::int64_t size, int dim) const {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t room = size + pad[d] + pad[d + 2] - dilate[d] * (kernel[d] - 1) - 1;
    return room < 0 ? 0 : room / stride[d] + 1;
}

Geometry Geometry::make(const Conv2dOptions& options, const Shape& x, const Shape& weight,
                        const Shape& y) {
    Geometry g{};
    g.n = x[0], g.in = x[1], g.h = x[2], g.w = x[3];
    g.out = y[1], g.oh = y[2], g.ow = y[3];
    g.kh = weight[2], g.kw = weight[3];
    g.groups = options.groups;
    g.sh = options.stride[0], g.sw = options.stride[1];
    g.pt = options.pad[0], g.pl = options.pad[1];
    g.dh = options.dilate[0], g.dw = options.dilate[1];
    return g;
}

Geometry Geometry::of(const Problem& problem) {
    const Conv2dOptions options = Conv2dOptions::read(problem.attrs);
    const Shape& first = problem.inputs.at(0).shape;
    const Shape& second = problem.inputs.at(1).shape;
    const Shape& result = problem.outputs.at(0).shape;
    if (problem.op == backward_data_type) return make(options, result, second, first);
    if (problem.op == backward_filter_type) return make(options, first, result, second);
    return make(options, first, second, result);
}

Geometry Geometry::lying() const {
    Geometry g = *this;
    if (w != 1 || ow != 1 || kw != 1 || pl != 0) return g;
    std::swap(g.h, g.w);
    std::swap(g.oh, g.ow);
    std::swap(g.kh, g.kw);
    std::swap(g.sh, g.sw);
    std::swap(g.pt, g.pl);
    std::swap(g.dh, g.dw);
    g.sh = g.dh = 1;
    return g;
}

}  // namespace dlprim::conv2d
