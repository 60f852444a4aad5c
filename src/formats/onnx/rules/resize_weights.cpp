// SPDX-License-Identifier: MIT
// Weights of Resize, as ONNX's reference implementation defines them.
#include "formats/onnx/rules/resize_weights.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <string_view>

namespace dlprim::onnx {

namespace {

/// Where output `at` lies among the inputs.
double coordinate(const ResizeWay& way, const ResizeAxis& axis, double at) {
    const double in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
    const double scaled = in * axis.scale;  // the output's size, before it is rounded
    const double half_pixel = (at + 0.5) / axis.scale - 0.5;
    if (way.coordinates == "align_corners") return scaled == 1 ? 0 : at * (in - 1) / (scaled - 1);
    if (way.coordinates == "asymmetric") return at / axis.scale;
    if (way.coordinates == "pytorch_half_pixel") return scaled == 1 ? -0.5 : half_pixel;
    if (way.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
    if (way.coordinates == "half_pixel_symmetric") return half_pixel + in / 2 * (1 - out / scaled);
    if (way.coordinates == "tf_crop_and_resize") {
        const double length = (axis.end - axis.begin) * (in - 1);
        return axis.begin * (in - 1) + (scaled == 1 ? length / 2 : at * length / (scaled - 1));
    }
    return half_pixel;
}

double cubic(double distance, double a) {
    const double x = std::abs(distance);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double linear(double distance) {
    return std::max(0.0, 1 - std::abs(distance));
}

/// Weights of neighbours; that with number 0 is the nearest one in front of the coordinate, which
/// lies `ratio` behind it, in (0, 1].
struct Kernel {
    int first = 0;
    std::vector<double> weights;
};

Kernel nearest_kernel(const std::string& rounding, double ratio) {
    if (ratio == 1) return {0, {0, 1}};
    const bool upper = rounding == "ceil"                 ? true
                       : rounding == "floor"              ? false
                       : rounding == "round_prefer_floor" ? ratio > 0.5
                                                          : ratio >= 0.5;
    return {0, {upper ? 0.0 : 1.0, upper ? 1.0 : 0.0}};
}

Kernel kernel(const ResizeWay& way, double ratio, double scale) {
    if (way.mode == "nearest") return nearest_kernel(way.nearest, ratio);
    const bool is_cubic = way.mode == "cubic";
    const double narrowed = way.antialias ? std::min(scale, 1.0) : 1.0;
    const double radius = is_cubic ? 2 : 1;
    Kernel made;
    made.first = static_cast<int>(std::floor(-radius / narrowed)) + 1;
    for (int i = made.first; i <= 1 - made.first; ++i) {
        const double distance = narrowed * (i - ratio);
        made.weights.push_back(is_cubic ? cubic(distance, way.cubic_coeff) : linear(distance));
    }
    if (way.antialias) {
        const double sum = std::accumulate(made.weights.begin(), made.weights.end(), 0.0);
        for (double& weight : made.weights) weight /= sum;
    }
    return made;
}

/// Adds what the neighbours give to one row. Those outside of the image are its edge.
void fill_row(const ResizeWay& way, const ResizeAxis& axis, double x, double* row) {
    double floor = std::floor(x);
    double ratio = x - floor;
    if (ratio == 0) {
        floor -= 1;
        ratio = 1;
    }
    Kernel made = kernel(way, ratio, axis.scale);
    const std::int64_t first = static_cast<std::int64_t>(floor) + made.first;
    if (way.exclude_outside) {
        double sum = 0;
        for (std::size_t i = 0; i < made.weights.size(); ++i) {
            const std::int64_t at = first + static_cast<std::int64_t>(i);
            if (at < 0 || at >= axis.in) made.weights[i] = 0;
            sum += made.weights[i];
        }
        for (double& weight : made.weights) weight /= sum;
    }
    for (std::size_t i = 0; i < made.weights.size(); ++i) {
        const std::int64_t at = first + static_cast<std::int64_t>(i);
        row[std::clamp<std::int64_t>(at, 0, axis.in - 1)] += made.weights[i];
    }
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool is_known_way(const ResizeWay& way) {
    return is_one_of(way.mode, {"nearest", "linear", "cubic"}) &&
           is_one_of(way.coordinates,
                     {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}) &&
           is_one_of(way.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
}

ResizeWeights resize_weights(const ResizeWay& way, const ResizeAxis& axis) {
    ResizeWeights made;
    made.weights.assign(static_cast<std::size_t>(axis.in * axis.out), 0);
    const bool crops = way.coordinates == "tf_crop_and_resize";
    if (crops) made.added.assign(static_cast<std::size_t>(axis.out), 0);
    for (std::int64_t i = 0; i < axis.out; ++i) {
        const double x = coordinate(way, axis, static_cast<double>(i));
        if (crops && (x < 0 || x > static_cast<double>(axis.in - 1)))
            made.added[static_cast<std::size_t>(i)] = way.extrapolation;
        else
            fill_row(way, axis, x, made.weights.data() + i * axis.in);
    }
    return made;
}

}  // namespace dlprim::onnx
