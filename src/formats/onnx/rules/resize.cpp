// SPDX-License-Identifier: MIT
// Images in another size, where the way is one of Interpolation's.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// How ONNX says it; what it means for Interpolation.
struct Way {
    std::string mode, coordinates, nearest;
};

/// A size that grows by a scale: as ONNX Runtime computes it, in float.
double scaled(std::int64_t size, double scale) {
    return static_cast<float>(size) * static_cast<float>(scale);
}

/// The same scale, or the next one to it that Interpolation, in double, rounds to `out` too.
double fitting_scale(std::int64_t size, std::int64_t out, double scale) {
    if (std::floor(static_cast<double>(size) * scale) == static_cast<double>(out)) return scale;
    return std::nextafter(static_cast<double>(out) / static_cast<double>(size), 2.0 * scale);
}

void interpolate(Call& call, const Way& way, const std::vector<double>& scales, const Ints& sizes) {
    const Shape& x = call.shape(0);
    call.supports(x.rank() == 4, "only images [N, C, H, W] are supported, the input has shape ",
                  x.str());
    call.check((scales.empty() ? sizes.size() : scales.size()) == 4,
               "scales or sizes want 4 entries");
    Ints out{x[0], x[1], 0, 0};
    for (std::size_t i = 0; i < 4; ++i) {
        const double size = scales.empty() ? static_cast<double>(sizes[i])
                                           : std::floor(scaled(x[static_cast<int>(i)], scales[i]));
        call.check(size >= 1 && size < 1e9, "a size of ", size);
        out[i] = static_cast<std::int64_t>(size);
    }
    call.supports(out[0] == x[0] && out[1] == x[1], "only height and width can change");
    const bool linear = way.mode == "linear" || way.mode == "bilinear";
    const bool half = way.coordinates == "half_pixel" || way.coordinates == "pytorch_half_pixel";
    const bool corners = way.coordinates == "align_corners",
               asymmetric = way.coordinates == "asymmetric";
    std::string method;
    if (linear && (half || corners))
        method = "bilinear";
    else if (way.mode == "nearest" && asymmetric && way.nearest == "floor")
        method = "nearest";
    call.supports(!method.empty(), "mode ", way.mode, " with coordinates ", way.coordinates,
                  way.mode == "nearest" ? " and rounding " + way.nearest : std::string(),
                  " is not supported");
    for (const int i : {2, 3}) {
        const auto at = static_cast<std::size_t>(i);
        call.supports(way.coordinates != "pytorch_half_pixel" || out[at] > 1 || x[i] == 1,
                      "coordinates pytorch_half_pixel with a size of 1 are not supported");
        call.supports(
            !corners || scales.empty() || scaled(x[i], scales[at]) == static_cast<double>(out[at]),
            "coordinates align_corners with a scale of ", scales[at],
            ", which makes no whole size of ", x[i], ", are not supported");
    }
    Attrs options{{"method", method}};
    if (corners) options.set("align_corners", true);
    if (scales.empty() || corners) {
        options.set("out_h", out[2]).set("out_w", out[3]);
    } else {
        options.set("scale_y", fitting_scale(x[2], out[2], scales[2]))
            .set("scale_x", fitting_scale(x[3], out[3], scales[3]));
    }
    call.set(0, call.build.add1("Interpolation", {call.in(0)}, options));
}

void upsample_by(Call& call, const std::vector<double>& scales) {
    interpolate(call, {call.text("mode", "nearest"), "asymmetric", "floor"}, scales, {});
}

void upsample(Call& call) {
    const Attribute* const scales = call.attribute("scales");
    const auto* const numbers = scales ? std::get_if<std::vector<double>>(&scales->data) : nullptr;
    call.check(numbers != nullptr, "attribute 'scales' is missing");
    upsample_by(call, *numbers);
}

void resize(Call& call) {
    Way way{call.text("mode", "nearest"), call.text("coordinate_transformation_mode", "half_pixel"),
            call.text("nearest_mode", "round_prefer_floor")};
    call.supports(call.integer("antialias", 0) == 0, "antialias is not supported");
    call.supports(!call.given("axes"), "axes are not supported");
    call.supports(call.text("keep_aspect_ratio_policy", "stretch") == "stretch",
                  "keep_aspect_ratio_policy is not supported");
    call.supports(call.integer("exclude_outside", 0) == 0, "exclude_outside is not supported");
    call.ignore("cubic_coeff_a");
    call.ignore("extrapolation_value");
    const bool by_scales = call.has(2) && call.shape(2).numel() > 0;
    if (by_scales) return interpolate(call, way, call.known_numbers(2, "scales"), {});
    interpolate(call, way, {}, call.known_integers(3, "sizes"));
}

const Rule rules[] = {
    {"Upsample", 7, upsample},
    {"Upsample", 9, [](Call& call) { upsample_by(call, call.known_numbers(1, "scales")); }},
    {"Resize", 10, [](Call& call) { upsample_by(call, call.known_numbers(1, "scales")); }},
    {"Resize", 11, resize},
};

}  // namespace

std::span<const Rule> resize_rules() {
    return rules;
}

}  // namespace dlprim::onnx
