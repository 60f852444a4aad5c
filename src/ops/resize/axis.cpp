// SPDX-License-Identifier: MIT
// Resize's options and geometry; see axis.hpp.
#include "ops/resize/axis.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace dlprim::resize {

namespace {

/// The inputs that one output reads, with their weights. Inputs beyond the image are its edge.
struct Mix {
    std::int64_t in;
    std::map<std::int64_t, double> weights;

    void add(std::int64_t at, double weight) {
        weights[std::clamp<std::int64_t>(at, 0, in - 1)] += weight;
    }
};

/// The weight of Keys' cubic at distance `x`. PyTorch has a = -0.75, and -0.5 with antialias.
double cubic(double x, double a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

void interpolate(Mix& mix, const Options& options, double step, std::int64_t o) {
    const auto position = static_cast<double>(o);
    if (options.method == Method::nearest || options.method == Method::nearest_exact) {
        const double half = options.method == Method::nearest ? 0 : 0.5;
        mix.add(static_cast<std::int64_t>(std::floor((position + half) * step)), 1);
        return;
    }
    double source = options.align_corners ? position * step : (position + 0.5) * step - 0.5;
    const bool is_cubic = options.method == Method::cubic;
    if (!is_cubic) source = std::max(source, 0.0);
    const auto at = static_cast<std::int64_t>(std::floor(source));
    const double part = source - static_cast<double>(at);
    if (is_cubic) {
        for (std::int64_t tap = -1; tap <= 2; ++tap)
            mix.add(at + tap, cubic(part - static_cast<double>(tap), -0.75));
    } else {
        mix.add(at, 1 - part);
        if (part > 0) mix.add(at + 1, part);
    }
}

/// Downsampling by a filter as wide as the step, which keeps high frequencies out.
void filter(Mix& mix, const Options& options, double step, std::int64_t o) {
    const bool is_cubic = options.method == Method::cubic;
    const double wide = std::max(step, 1.0), support = (is_cubic ? 2 : 1) * wide;
    const double center = step * (static_cast<double>(o) + 0.5);
    const std::int64_t from =
        std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const std::int64_t to =
        std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), mix.in);
    double total = 0;
    for (std::int64_t i = from; i < to; ++i) {
        const double x = (static_cast<double>(i) - center + 0.5) / wide;
        const double weight = is_cubic ? cubic(x, -0.5) : std::max(0.0, 1 - std::abs(x));
        mix.add(i, weight);
        total += weight;
    }
    if (total != 0)
        for (auto& [at, weight] : mix.weights) weight /= total;
}

}  // namespace

Options::Options(const Attrs& attrs)
    : method(chosen<Method, &ops::Resize::method>(attrs)),
      align_corners(attrs.boolean("align_corners")),
      antialias(attrs.boolean("antialias")),
      output(attrs.ints("output")),
      scales(attrs.numbers("scales")) {
    const bool smooth = method == Method::linear || method == Method::cubic;
    require(smooth || (!align_corners && !antialias),
            "align_corners and antialias go with methods linear and cubic only");
    for (const double scale : scales)
        require(scale > 0 && std::isfinite(scale), "a scale of ", scale,
                " is invalid; it must be positive");
    require(!output.empty() || !scales.empty(), "give output or scales, or both");
}

Shape Options::output_shape(const Shape& x) const {
    require(x.rank() >= 3 && x.rank() <= 5, "input ", x.str(),
            " is not [N, C, ...] with one to three dimensions of images");
    const auto dims = static_cast<std::size_t>(x.rank() - 2);
    require(output.empty() || output.size() == dims || output.size() == 1, "output has ",
            output.size(), " entries, images have ", dims, " dimensions");
    require(scales.empty() || scales.size() == dims || scales.size() == 1, "scales has ",
            scales.size(), " entries, images have ", dims, " dimensions");
    std::vector<std::int64_t> sizes{x[0], x[1]};
    for (std::size_t i = 0; i < dims; ++i) {
        const std::int64_t in = x[2 + static_cast<int>(i)];
        require(in >= 1 && in < (std::int64_t{1} << 31), "input ", x.str(),
                " has images without elements");
        if (!output.empty()) {
            sizes.push_back(output[output.size() == 1 ? 0 : i]);
            continue;
        }
        const double size =
            std::floor(static_cast<double>(in) * scales[scales.size() == 1 ? 0 : i]);
        require(size >= 1 && size < 2147483648.0, "the scales make an image of size ", size,
                " from input ", x.str());
        sizes.push_back(static_cast<std::int64_t>(size));
    }
    return Shape(sizes);
}

Axis::Axis(const Options& options, std::int64_t in_size, std::int64_t out_size,
           std::optional<double> scale) {
    double step =
        scale ? 1.0 / *scale : static_cast<double>(in_size) / static_cast<double>(out_size);
    if (options.align_corners)
        step =
            out_size > 1 ? static_cast<double>(in_size - 1) / static_cast<double>(out_size - 1) : 0;
    Positions positions;
    Weights weights;
    for (std::int64_t o = 0; o < out_size; ++o) {
        Mix mix{in_size, {}};
        if (options.antialias)
            filter(mix, options, step, o);
        else
            interpolate(mix, options, step, o);
        positions.emplace_back();
        weights.emplace_back();
        for (const auto& [at, share] : mix.weights) {
            positions.back().push_back(at);
            weights.back().push_back(share);
        }
    }
    *this = Axis(positions, weights, in_size);
}

Axis::Axis(const Positions& positions, const Weights& weights, std::int64_t in_size)
    : in(in_size),
      out(static_cast<std::int64_t>(positions.size())),
      first(static_cast<std::size_t>(in), static_cast<std::int32_t>(out)),
      last(static_cast<std::size_t>(in), 0) {
    for (const auto& one : positions) taps = std::max(taps, static_cast<std::int64_t>(one.size()));
    weight.assign(static_cast<std::size_t>(out * taps), 0);
    for (std::size_t o = 0; o < positions.size(); ++o) {
        start.push_back(positions[o].empty() ? 0 : static_cast<std::int32_t>(positions[o][0]));
        count.push_back(static_cast<std::int32_t>(positions[o].size()));
        std::copy(weights[o].begin(), weights[o].end(),
                  weight.begin() + static_cast<std::ptrdiff_t>(o) * taps);
        for (const std::int64_t i : positions[o]) {
            const auto at = static_cast<std::size_t>(i);
            first[at] = std::min(first[at], static_cast<std::int32_t>(o));
            last[at] = std::max(last[at], static_cast<std::int32_t>(o) + 1);
        }
    }
}

std::array<Axis, 3> axes(const Attrs& attrs, const Shape& x) {
    const Options options(attrs);
    const Shape y = options.output_shape(x);
    std::array<Axis, 3> result;
    for (int i = 2; i < x.rank(); ++i) {
        std::optional<double> scale;
        if (!options.scales.empty())
            scale =
                options.scales[options.scales.size() == 1 ? 0 : static_cast<std::size_t>(i - 2)];
        result[static_cast<std::size_t>(i + 3 - x.rank())] = Axis(options, x[i], y[i], scale);
    }
    return result;
}

}  // namespace dlprim::resize
