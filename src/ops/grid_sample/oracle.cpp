// SPDX-License-Identifier: MIT
// GridSample's oracles. The weight of a pixel for a place is a product of two functions of one
// coordinate; the gradient by the place comes from their derivatives.
#include "ops/grid_sample/operators.hpp"

#include <cmath>
#include <map>
#include <tuple>

namespace dlprim::grid_sample {

namespace {

/// A pixel's weight along one dimension, and its derivative by the place's coordinate.
struct Weight {
    double value = 0, slope = 0;
};
using Line = std::map<std::int64_t, Weight>;

/// Where `p` is after reflections at `low` and `high`, and the sign of the derivative.
std::pair<double, double> reflect(double p, double low, double high) {
    if (high == low) return {0, 0};
    double sign = 1;
    while (p < low || p > high) {
        p = p < low ? 2 * low - p : 2 * high - p;
        sign = -sign;
    }
    return {p, sign};
}

/// The position that `p` has by the padding, and the derivative.
std::pair<double, double> inside(const Options& o, double p, std::int64_t size) {
    double slope = 1;
    const double last = double(size - 1);
    if (o.padding == Padding::reflection)
        std::tie(p, slope) =
            o.align_corners ? reflect(p, 0, last) : reflect(p, -0.5, double(size) - 0.5);
    if (o.padding == Padding::zeros) return {p, 1};
    if (p <= 0) return {0, 0};
    if (p >= last) return {last, 0};
    return {p, slope};
}

/// Keys' cubic with a = -0.75, and its derivative.
std::pair<double, double> cubic(double x) {
    const double a = -0.75, d = std::abs(x), sign = x < 0 ? -1 : 1;
    if (d <= 1)
        return {(a + 2) * d * d * d - (a + 3) * d * d + 1,
                sign * (3 * (a + 2) * d * d - 2 * (a + 3) * d)};
    return {a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a,
            sign * (3 * a * d * d - 10 * a * d + 8 * a)};
}

Line line(const Options& o, double coordinate, std::int64_t size) {
    const double scale = double(o.align_corners ? size - 1 : size) / 2;
    double p = o.align_corners ? (coordinate + 1) * scale : (coordinate + 1) * scale - 0.5;
    double slope = scale;
    if (o.mode != Mode::bicubic) {
        const auto [at, factor] = inside(o, p, size);
        p = at;
        slope *= factor;
    }
    Line result;
    const auto add = [&](std::int64_t at, double weight, double by_p) {
        if (o.mode == Mode::bicubic) at = std::int64_t(inside(o, double(at), size).first);
        if (at < 0 || at >= size) return;
        result[at].value += weight;
        result[at].slope += by_p * slope;
    };
    const auto low = std::int64_t(std::floor(p));
    const double part = p - double(low);
    if (o.mode == Mode::nearest) {
        add(std::int64_t(std::nearbyint(p)), 1, 0);
    } else if (o.mode == Mode::bilinear) {
        add(low, 1 - part, -1);
        add(low + 1, part, 1);
    } else {
        for (std::int64_t i = -1; i <= 2; ++i) {
            const auto [weight, by_p] = cubic(part - double(i));
            add(low + i, weight, by_p);
        }
    }
    return result;
}

/// Calls visit(place, pixel of its image, weights along y and x) for each pixel of each place.
template <typename Visit>
void each_pixel(const Options& o, const Sizes& s, const HostArray& grid, Visit&& visit) {
    for (std::int64_t place = 0; place < s.n * s.oh * s.ow; ++place) {
        const auto at = static_cast<std::size_t>(2 * place);
        const Line across = line(o, grid.data[at], s.w), down = line(o, grid.data[at + 1], s.h);
        for (const auto& [y, weight_y] : down)
            for (const auto& [x, weight_x] : across) visit(place, y * s.w + x, weight_y, weight_x);
    }
}

/// The element of x or y in channel `c` of the place's image.
std::size_t pixel_at(const Sizes& s, std::int64_t place, std::int64_t c, std::int64_t pixel) {
    return static_cast<std::size_t>((place / (s.oh * s.ow) * s.c + c) * s.h * s.w + pixel);
}
std::size_t output_at(const Sizes& s, std::int64_t place, std::int64_t c) {
    const std::int64_t places = s.oh * s.ow;
    return static_cast<std::size_t>((place / places * s.c + c) * places + place % places);
}

}  // namespace

void oracle(OracleCall& call) {
    const HostArray &x = call.inputs[0], &grid = call.inputs[1];
    const Sizes s(x.shape, grid.shape);
    HostArray& y = call.outputs[0];
    y.shape = Shape{s.n, s.c, s.oh, s.ow};
    y.dtype = x.dtype;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0);
    each_pixel(Options(call.attrs), s, grid,
               [&](std::int64_t place, std::int64_t pixel, Weight down, Weight across) {
                   for (std::int64_t c = 0; c < s.c; ++c)
                       y.data[output_at(s, place, c)] +=
                           down.value * across.value * x.data[pixel_at(s, place, c, pixel)];
               });
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray &x = call.inputs[0], &grid = call.inputs[1], &dy = call.output_gradients[0];
    const Sizes s(x.shape, grid.shape);
    call.input_gradients = {x, grid};
    for (HostArray& gradient : call.input_gradients) gradient.data.assign(gradient.data.size(), 0);
    std::vector<double>&dx = call.input_gradients[0].data, &dgrid = call.input_gradients[1].data;
    each_pixel(Options(call.attrs), s, grid,
               [&](std::int64_t place, std::int64_t pixel, Weight down, Weight across) {
                   for (std::int64_t c = 0; c < s.c; ++c) {
                       const double g = dy.data[output_at(s, place, c)];
                       const std::size_t at = pixel_at(s, place, c, pixel);
                       dx[at] += down.value * across.value * g;
                       const auto to = static_cast<std::size_t>(2 * place);
                       dgrid[to] += down.value * across.slope * g * x.data[at];
                       dgrid[to + 1] += down.slope * across.value * g * x.data[at];
                   }
               });
}

}  // namespace dlprim::grid_sample
