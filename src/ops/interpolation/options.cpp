// SPDX-License-Identifier: MIT
// Interpolation's options and geometry; see options.hpp.
#include "ops/interpolation/options.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>

#include <algorithm>
#include <cmath>

namespace dlprim::interpolation {

Options::Options(const Attrs& attrs)
    : mode(chosen<Mode, &ops::Interpolation::method>(attrs)),
      align_corners(attrs.boolean("align_corners")) {
    require(!align_corners || mode == Mode::bilinear,
            "align_corners is supported for method bilinear only");
    const auto scale = [&](const char* option) -> std::optional<double> {
        const double value = attrs.number(option);
        if (value == -1) return {};
        require(value > 0 && std::isfinite(value), option, " is ", value, "; a scale is positive");
        return value;
    };
    scale_y = scale("scale_y");
    scale_x = scale("scale_x");
    out_h = attrs.integer("out_h");
    out_w = attrs.integer("out_w");
    for (const std::int64_t size : {out_h, out_w})
        require(size == -1 || (size >= 1 && size < (std::int64_t{1} << 31)), "an output size of ",
                size, " is invalid; out_h and out_w must be at least 1");
    const bool scales = scale_y && scale_x, sizes = out_h > 0 && out_w > 0;
    const bool any_scale = scale_y || scale_x, any_size = out_h > 0 || out_w > 0;
    require((scales && !any_size) || (sizes && !any_scale),
            "give either scale_y and scale_x, or out_h and out_w");
}

Shape Options::output_shape(const Shape& input) const {
    require(input.rank() == 4, "input ", input.str(), " is not [N, C, H, W]");
    if (!scale_y) return {input[0], input[1], out_h, out_w};
    const double h = std::floor(static_cast<double>(input[2]) * *scale_y);
    const double w = std::floor(static_cast<double>(input[3]) * *scale_x);
    require(h >= 1 && w >= 1 && h < 2147483648.0 && w < 2147483648.0, "scales ", *scale_y, " and ",
            *scale_x, " make an image of ", h, " x ", w, " from input ", input.str());
    return {input[0], input[1], static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)};
}

Axis::Axis(Mode mode, bool align_corners, std::optional<double> scale, std::int64_t in,
           std::int64_t out)
    : low(static_cast<std::size_t>(out)),
      high(low),
      weight(low.size()),
      first(static_cast<std::size_t>(in)),
      last(first.size()) {
    double step;
    if (align_corners)
        step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    else
        step = scale ? 1.0 / *scale : static_cast<double>(in) / static_cast<double>(out);
    for (std::size_t o = 0; o < low.size(); ++o) {
        const auto position = static_cast<double>(o);
        double source;
        switch (mode) {
            case Mode::nearest:
                source = std::floor(position * step);
                break;
            case Mode::nearest_exact:
                source = std::floor((position + 0.5) * step);
                break;
            default:
                source =
                    align_corners ? position * step : std::max(0.0, (position + 0.5) * step - 0.5);
        }
        const auto at = std::min(static_cast<std::int64_t>(source), in - 1);
        low[o] = static_cast<std::int32_t>(at);
        high[o] = low[o];
        if (mode == Mode::bilinear) {
            high[o] = static_cast<std::int32_t>(std::min(at + 1, in - 1));
            weight[o] = static_cast<float>(std::clamp(source - static_cast<double>(at), 0.0, 1.0));
        }
    }
    // Source positions grow with output positions, so the readers of an input are consecutive.
    std::fill(first.begin(), first.end(), static_cast<std::int32_t>(out));
    for (std::size_t o = 0; o < low.size(); ++o)
        for (const std::int32_t i : {low[o], high[o]}) {
            const auto at = static_cast<std::size_t>(i);
            first[at] = std::min(first[at], static_cast<std::int32_t>(o));
            last[at] = std::max(last[at], static_cast<std::int32_t>(o) + 1);
        }
}

std::vector<Axis> axes(const Attrs& attrs, const Shape& x, const Shape& y) {
    const Options o(attrs);
    return {Axis(o.mode, o.align_corners, o.scale_y, x[2], y[2]),
            Axis(o.mode, o.align_corners, o.scale_x, x[3], y[3])};
}

View::View(const Shape& shape, const Layout& layout) {
    switch (layout.kind) {
        case Layout::Kind::channels_last:
            outer = shape[0];
            inner = shape[1];
            break;
        case Layout::Kind::blocked:
            outer = shape[0] * ((shape[1] + layout.block - 1) / layout.block);
            inner = layout.block;
            break;
        default:
            outer = shape[0] * shape[1];
    }
}

std::vector<LayoutChoice> layouts(const Traits& device, const Problem&) {
    std::vector<LayoutChoice> result;
    if (device.wide_vectors || device.host)
        for (const int block : {16, 8})
            result.push_back({{Layout::blocked(block)}, {Layout::blocked(block)}});
    result.push_back({{Layout::plain()}, {Layout::plain()}});
    result.push_back({{Layout::channels_last()}, {Layout::channels_last()}});
    return result;
}

Verdict is_applicable(const Problem& problem) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    if (problem.inputs[0].dtype != DType::f32 || problem.outputs[0].dtype != DType::f32)
        return Verdict::no(cat("it supports float tensors only, not ",
                               name_of(problem.inputs[0].dtype), " and ",
                               name_of(problem.outputs[0].dtype)));
    return Verdict::yes();
}

}  // namespace dlprim::interpolation
