// SPDX-License-Identifier: MIT
// Naive convolutions in double, to which the results of engines are compared.
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"

namespace dlprim::conv2d {

namespace {

// Calls visit(x index, weight index, y index) for every product of the convolution.
template <typename Visit>
void for_each_product(const Geometry& g, const Visit& visit) {
    const std::int64_t in_g = g.group_in(), out_g = g.group_out();
    for (std::int64_t n = 0; n < g.n; ++n)
        for (std::int64_t o = 0; o < g.out; ++o)
            for (std::int64_t y = 0; y < g.oh; ++y)
                for (std::int64_t x = 0; x < g.ow; ++x)
                    for (std::int64_t c = 0; c < in_g; ++c)
                        for (std::int64_t ky = 0; ky < g.kh; ++ky)
                            for (std::int64_t kx = 0; kx < g.kw; ++kx) {
                                const std::int64_t iy = y * g.sh - g.pt + ky * g.dh;
                                const std::int64_t ix = x * g.sw - g.pl + kx * g.dw;
                                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue;
                                const std::int64_t channel = o / out_g * in_g + c;
                                visit(((n * g.in + channel) * g.h + iy) * g.w + ix,
                                      ((o * in_g + c) * g.kh + ky) * g.kw + kx,
                                      ((n * g.out + o) * g.oh + y) * g.ow + x);
                            }
}

double* zeroed(HostArray& array) {
    array.data.assign(static_cast<std::size_t>(array.shape.numel()), 0.0);
    return array.data.data();
}

}  // namespace

void forward_oracle(const Conv2dOptions& options, const HostArray& x, const HostArray& weight,
                    const HostArray* bias, HostArray& y) {
    y.shape = Shape{x.shape[0], weight.shape[0], options.output_size(x.shape[2], 0),
                    options.output_size(x.shape[3], 1)};
    double* to = zeroed(y);
    for_each_product(
        Geometry::make(options, x.shape, weight.shape, y.shape),
        [&, px = x.data.data(), pw = weight.data.data()](
            std::int64_t ix, std::int64_t iw, std::int64_t iy) { to[iy] += px[ix] * pw[iw]; });
    if (!bias) return;
    const std::int64_t area = y.shape[2] * y.shape[3];
    for (std::int64_t i = 0; i < y.shape.numel(); ++i)
        to[i] += bias->data[static_cast<std::size_t>(i / area % y.shape[1])];
}

void backward_data_oracle(const Conv2dOptions& options, const HostArray& dy,
                          const HostArray& weight, HostArray& dx) {
    double* to = zeroed(dx);
    for_each_product(
        Geometry::make(options, dx.shape, weight.shape, dy.shape),
        [&, py = dy.data.data(), pw = weight.data.data()](
            std::int64_t ix, std::int64_t iw, std::int64_t iy) { to[ix] += py[iy] * pw[iw]; });
}

void backward_filter_oracle(const Conv2dOptions& options, const HostArray& x, const HostArray& dy,
                            HostArray& dweight) {
    double* to = zeroed(dweight);
    for_each_product(
        Geometry::make(options, x.shape, dweight.shape, dy.shape),
        [&, px = x.data.data(), py = dy.data.data()](
            std::int64_t ix, std::int64_t iw, std::int64_t iy) { to[iw] += px[ix] * py[iy]; });
}

}  // namespace dlprim::conv2d
