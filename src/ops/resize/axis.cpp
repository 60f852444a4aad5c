// SPDX-License-Identifier: MIT
// Resize's options and geometry; see axis.hpp.
#include "ops/resize/axis.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"
#include "graph/image_options.hpp"

#include <dlprim/op_options.hpp>

#include <algorithm>
#include <cmath>

namespace dlprim::resize {

namespace {

/// The weight of Keys' cubic at distance `x`. PyTorch has a = -0.75, and -0.5 with antialias.
double cubic(double x, double a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

int taps_of(Method method) {
    return method == Method::cubic ? 4 : method == Method::linear ? 2 : 1;
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
    const auto dims = static_cast<std::size_t>(dims_of_images(x));
    require(output.empty() || output.size() == dims || output.size() == 1, "output has ",
            output.size(), " entries, images have ", dims, " dimensions");
    require(scales.empty() || scales.size() == dims || scales.size() == 1, "scales has ",
            scales.size(), " entries, images have ", dims, " dimensions");
    std::vector<std::int64_t> sizes{x[0], x[1]};
    for (std::size_t i = 0; i < dims; ++i) {
        const std::int64_t in = x[2 + static_cast<int>(i)];
        require(in >= 1 && in < (std::int64_t{1} << 31), "input ", x,
                " has images without elements");
        if (!output.empty()) {
            sizes.push_back(output[output.size() == 1 ? 0 : i]);
            continue;
        }
        const double size =
            std::floor(static_cast<double>(in) * scales[scales.size() == 1 ? 0 : i]);
        require(size >= 1 && size < 2147483648.0, "the scales make an image of size ", size,
                " from input ", x);
        sizes.push_back(static_cast<std::int64_t>(size));
    }
    return Shape(sizes);
}

void Axis::add_linear(Mix& mix, double source, bool in_double) {
    source = std::max(source, 0.0);
    const double floor = std::floor(source);
    double part = source - floor;
    if (!in_double) part = static_cast<double>(static_cast<float>(part));
    const auto at = static_cast<std::int64_t>(floor);
    mix.push_back({at + 1, part});
    mix.push_back({at, 1 - part});
}

void Axis::add_cubic(Mix& mix, double source) {
    const double floor = std::floor(source);
    for (std::int64_t tap = -1; tap <= 2; ++tap)
        mix.push_back({static_cast<std::int64_t>(floor) + tap,
                       cubic(source - floor - static_cast<double>(tap), -0.75)});
}

/// Downsampling by a filter as wide as the step, which keeps high frequencies out.
void Axis::add_filter(Mix& mix, bool is_cubic, double step, double position, std::int64_t in) {
    const double wide = std::max(step, 1.0), support = (is_cubic ? 2 : 1) * wide;
    const double center = step * (position + 0.5);
    const std::int64_t from =
        std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(center - support + 0.5)), 0);
    const std::int64_t to =
        std::min<std::int64_t>(static_cast<std::int64_t>(std::floor(center + support + 0.5)), in);
    double total = 0;
    for (std::int64_t i = from; i < to; ++i) {
        const double x = (static_cast<double>(i) - center + 0.5) / wide;
        mix.push_back({i, is_cubic ? cubic(x, -0.5) : std::max(0.0, 1 - std::abs(x))});
        total += mix.back().weight;
    }
    if (total != 0)
        for (Tap& tap : mix) tap.weight /= total;
}

Axis::Axis(const Options& options, std::int64_t in_size, std::int64_t out_size,
           std::optional<double> scale, bool in_double) {
    double step =
        scale ? 1.0 / *scale : static_cast<double>(in_size) / static_cast<double>(out_size);
    if (options.align_corners)
        step =
            out_size > 1 ? static_cast<double>(in_size - 1) / static_cast<double>(out_size - 1) : 0;
    std::vector<Mix> mixes(static_cast<std::size_t>(out_size));
    for (std::size_t o = 0; o < mixes.size(); ++o) {
        Mix& mix = mixes[o];
        const auto place = static_cast<double>(o);
        const double center = options.align_corners ? place * step : (place + 0.5) * step - 0.5;
        if (options.antialias)
            add_filter(mix, options.method == Method::cubic, step, place, in_size);
        else if (options.method == Method::cubic)
            add_cubic(mix, center);
        else if (options.method == Method::linear)
            add_linear(mix, center, in_double);
        else
            mix.push_back({static_cast<std::int64_t>(std::floor(
                               (place + (options.method == Method::nearest ? 0 : 0.5)) * step)),
                           1});
        // Inputs beyond the image are its edge.
        for (Tap& tap : mix) tap.position = std::clamp<std::int64_t>(tap.position, 0, in_size - 1);
    }
    *this = Axis(in_size, mixes, options.antialias ? 0 : taps_of(options.method));
    // Each input of images that grow by a whole number is read so often.
    const bool whole = scale && *scale <= 4 && *scale == std::floor(*scale) &&
                       static_cast<double>(in_size) * *scale == static_cast<double>(out_size);
    readers_ = whole && options.method == Method::nearest ? static_cast<int>(*scale) : 0;
}

Axis::Axis(std::int64_t in_size, const std::vector<Mix>& mixes, int taps_by_options)
    : in(in_size),
      out(static_cast<std::int64_t>(mixes.size())),
      count(),
      option_taps(taps_by_options) {
    for (const Mix& mix : mixes) taps = std::max(taps, static_cast<std::int64_t>(mix.size()));
    position.assign(static_cast<std::size_t>(out * taps), 0);
    weight.assign(position.size(), 0);
    for (std::size_t o = 0; o < mixes.size(); ++o) {
        std::size_t at = o * static_cast<std::size_t>(taps);
        for (const Tap& tap : mixes[o]) {
            position[at] = static_cast<std::int32_t>(tap.position);
            weight[at++] = tap.weight;
        }
        count.push_back(static_cast<std::int32_t>(mixes[o].size()));
    }
}

Axis Axis::transposed() const {
    std::vector<Mix> readers(static_cast<std::size_t>(in));
    for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t t = 0; t < count[static_cast<std::size_t>(o)]; ++t) {
            const auto at = static_cast<std::size_t>(o * taps + t);
            if (weight[at] == 0) continue;
            Mix& mix = readers[static_cast<std::size_t>(position[at])];
            if (mix.empty() || mix.back().position != o) mix.push_back({o, 0});
            mix.back().weight += weight[at];
        }
    return Axis(out, readers, readers_);
}

int Axis::fixed_taps() const {
    const bool same =
        std::all_of(count.begin(), count.end(), [&](std::int64_t mixed) { return mixed == taps; });
    if (!same || taps > 4) return 0;
    const bool is_choice =
        std::all_of(weight.begin(), weight.end(), [](double w) { return w == 1; });
    return taps > 1 || is_choice ? static_cast<int>(taps) : 0;
}

std::array<Axis, 3> axes(const Attrs& attrs, const Shape& x, bool in_double) {
    const Options options(attrs);
    const Shape y = options.output_shape(x);
    std::array<Axis, 3> result;
    for (int i = 2; i < x.rank(); ++i) {
        std::optional<double> scale;
        if (!options.scales.empty())
            scale =
                options.scales[options.scales.size() == 1 ? 0 : static_cast<std::size_t>(i - 2)];
        result[static_cast<std::size_t>(i + 3 - x.rank())] =
            Axis(options, x[i], y[i], scale, in_double);
    }
    return result;
}

}  // namespace dlprim::resize
