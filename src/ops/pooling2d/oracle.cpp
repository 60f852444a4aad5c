// SPDX-License-Identifier: MIT
// Pooling2D's oracle: computes every window by plain loops in double. It breaks ties as PyTorch
// does (the first maximum, or the last NaN if there is one) and has PyTorch's divisor.
#include "ops/pooling2d/operator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::pooling2d {

namespace {

/// One output element: its window, and the divisor of the average.
struct Window {
    std::int64_t top, left;       ///< positions that may be in the padding
    std::int64_t y0, y1, x0, x1;  ///< the part inside the input
    double divisor;
};

Window window(const Options& o, const Shape& x, std::int64_t row, std::int64_t column) {
    Window w{};
    w.top = row * o.stride[0] - o.pad[0];
    w.left = column * o.stride[1] - o.pad[1];
    // A window that extends beyond the end stops at the end of the padding.
    const std::int64_t bottom = std::min(w.top + o.kernel[0], x[2] + o.pad[2]);
    const std::int64_t right = std::min(w.left + o.kernel[1], x[3] + o.pad[3]);
    const std::int64_t whole = (bottom - w.top) * (right - w.left);
    w.y0 = std::max<std::int64_t>(w.top, 0);
    w.x0 = std::max<std::int64_t>(w.left, 0);
    w.y1 = std::min(bottom, x[2]);
    w.x1 = std::min(right, x[3]);
    w.divisor = static_cast<double>(o.count_include_pad ? whole : (w.y1 - w.y0) * (w.x1 - w.x0));
    return w;
}

/// The position of the maximum in the channel's plane.
std::int64_t arg_max(const Window& w, const double* plane, std::int64_t width) {
    double best = -std::numeric_limits<double>::infinity();
    std::int64_t at = w.y0 * width + w.x0;
    for (std::int64_t i = w.y0; i < w.y1; ++i)
        for (std::int64_t j = w.x0; j < w.x1; ++j) {
            const double v = plane[i * width + j];
            if (v > best || std::isnan(v)) {
                best = v;
                at = i * width + j;
            }
        }
    return at;
}

template <typename F>
void each(const Shape& y, F&& f) {
    std::size_t to = 0;
    for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane)
        for (std::int64_t i = 0; i < y[2]; ++i)
            for (std::int64_t j = 0; j < y[3]; ++j) f(plane, i, j, to++);
}

}  // namespace

void Pooling2D::oracle(OracleCall& call) const {
    const Options o(call.attrs);
    const HostArray& x = call.inputs[0];
    HostArray& y = call.outputs[0];
    y.shape = o.output_shape(x.shape);
    y.dtype = x.dtype;
    y.data.resize(static_cast<std::size_t>(y.shape.numel()));
    HostArray index{y.shape, y.data, o.index_type()};
    const std::int64_t width = x.shape[3], area = x.shape[2] * width;
    each(y.shape, [&](std::int64_t p, std::int64_t i, std::int64_t j, std::size_t to) {
        const Window w = window(o, x.shape, i, j);
        const double* plane = x.data.data() + p * area;
        if (o.average) {
            double sum = 0;
            for (std::int64_t a = w.y0; a < w.y1; ++a)
                for (std::int64_t b = w.x0; b < w.x1; ++b) sum += plane[a * width + b];
            y.data[to] = sum / w.divisor;
        } else {
            const std::int64_t at = arg_max(w, plane, width);
            y.data[to] = plane[at];
            index.data[to] =
                static_cast<double>((at / width - w.top) * o.kernel[1] + (at % width - w.left));
        }
    });
    if (o.return_indices) call.outputs.at(1) = index;
}

void Pooling2D::oracle_backward(OracleBackwardCall& call) const {
    const Options o(call.attrs);
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = x;
    dx.data.assign(x.data.size(), 0.0);
    const std::int64_t width = x.shape[3], area = x.shape[2] * width;
    each(dy.shape, [&](std::int64_t p, std::int64_t i, std::int64_t j, std::size_t from) {
        const Window w = window(o, x.shape, i, j);
        double* plane = dx.data.data() + p * area;
        if (o.average) {
            for (std::int64_t a = w.y0; a < w.y1; ++a)
                for (std::int64_t b = w.x0; b < w.x1; ++b)
                    plane[a * width + b] += dy.data[from] / w.divisor;
        } else {
            plane[arg_max(w, x.data.data() + p * area, width)] += dy.data[from];
        }
    });
}

}  // namespace dlprim::pooling2d
