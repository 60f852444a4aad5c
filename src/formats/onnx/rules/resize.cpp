// SPDX-License-Identifier: MIT
// Images in another size: the operator Resize where that has the way, otherwise products with a
// matrix of weights along each axis.
#include "formats/onnx/call.hpp"
#include "formats/onnx/rules/resize_weights.hpp"
#include "formats/onnx/rules/shared.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

/// A matrix of weights has no more elements.
constexpr std::int64_t largest_weights = 1 << 24;

/// A size that grows by a scale: as ONNX Runtime computes it, in float.
double scaled(std::int64_t size, double scale) {
    return static_cast<float>(size) * static_cast<float>(scale);
}

/// The same scale, or the next one to it that the operator, in double, rounds to `out` too.
double fitting_scale(const ResizeAxis& axis) {
    const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
    if (std::floor(in * axis.scale) == out) return axis.scale;
    return std::nextafter(out / in, 2.0 * axis.scale);
}

/// Which of the operator's methods does the same, or "".
std::string method_of_operator(const ResizeWay& way, const Shape& x,
                               const std::vector<ResizeAxis>& axes) {
    if (x.rank() != 4 || way.antialias || way.exclude_outside) return {};
    const bool half = way.coordinates == "half_pixel" || way.coordinates == "pytorch_half_pixel";
    const bool corners = way.coordinates == "align_corners";
    for (const ResizeAxis& one : axes) {
        if (one.axis < 2 && one.in != one.out) return {};
        if (one.axis < 2) continue;
        if (way.coordinates == "pytorch_half_pixel" && one.out == 1 && one.in > 1) return {};
        const double size = static_cast<double>(one.in) * one.scale;
        const double rounded = std::abs(size - static_cast<double>(one.out));
        if (corners && rounded > 1e-6) return {};
        // The operator rounds down; only a float's last digits may make that another size.
        if (half && std::floor(size) != static_cast<double>(one.out) && rounded > 1e-3) return {};
    }
    if (way.mode == "linear" && (half || corners)) return "linear";
    const bool floors = way.coordinates == "asymmetric" && way.nearest == "floor";
    return way.mode == "nearest" && floors ? "nearest" : "";
}

Ref resized(Call& call, const ResizeWay& way, const std::string& method,
            const std::vector<ResizeAxis>& axes) {
    const bool corners = way.coordinates == "align_corners";
    Ints sizes;
    Doubles scales;
    for (const int i : {2, 3}) {
        const auto found = std::find_if(axes.begin(), axes.end(),
                                        [&](const ResizeAxis& one) { return one.axis == i; });
        const std::int64_t size = call.shape(0)[i];
        const ResizeAxis axis = found == axes.end() ? ResizeAxis{i, size, size, 1, 0, 1} : *found;
        sizes.push_back(axis.out);
        scales.push_back(fitting_scale(axis));
    }
    Attrs options{{"method", method}};
    if (corners)
        options.set("align_corners", true).set("output", sizes);
    else
        options.set("scales", scales);
    return call.build.add1("Resize", {call.in(0)}, options);
}

/// One axis of which each place takes one element: `made` has a 1 for it in every row.
Ref picked(Call& call, Ref value, const ResizeAxis& axis, const ResizeWeights& made) {
    Ints at;
    for (auto row = made.weights.begin(); row != made.weights.end(); row += axis.in)
        at.push_back(std::max_element(row, row + axis.in) - row);
    return gather_computed(call, value, call.build.constant("", host_integers({axis.out}, at)),
                           axis.axis);
}

/// One axis as a product with a matrix of weights.
Ref multiplied(Call& call, Ref value, const ResizeWay& way, const ResizeAxis& axis) {
    call.supports(axis.in <= largest_weights / axis.out, "resizing from ", axis.in, " to ",
                  axis.out, " in this way takes a matrix that is too large");
    call.build.claim({axis.out, axis.in}, DType::f64);
    const ResizeWeights made = resize_weights(way, axis);
    if (way.mode == "nearest" && made.added.empty()) return picked(call, value, axis, made);
    Builder& build = call.build;
    const Shape& shape = value->spec.shape;
    const DType dtype = value->spec.dtype;
    const std::int64_t outer = shape.product(0, axis.axis),
                       inner = shape.product(axis.axis + 1, shape.rank());
    Ref y = nullptr;
    if (dtype == DType::f32) {
        const Ref weights =
            build.constant("", host_numbers({axis.out, axis.in}, made.weights, dtype));
        if (inner == 1)
            y = build.add1("MatMul", {build.reshape(value, {outer, axis.in}), weights},
                           {{"transpose_b", true}});
        else
            y = build.add1("MatMul", {weights, build.reshape(value, {outer, axis.in, inner})});
    } else {
        const Ref weights = build.constant(
            "", host_numbers({axis.out, axis.in, 1}, made.weights,
                             is_float(dtype) || way.mode == "nearest" ? dtype : DType::f32));
        y = build.pointwise("y0 = sum[2](x0 * x1)",
                            {build.reshape(value, {outer, 1, axis.in, inner}), weights}, dtype);
    }
    if (!made.added.empty())
        y = build.pointwise("y0 = x0 + x1",
                            {build.reshape(y, {outer, axis.out, inner}),
                             build.constant("", host_numbers({axis.out, 1}, made.added, dtype))},
                            dtype);
    return build.reshape(y, shape.with(axis.axis, axis.out));
}

void interpolate(Call& call, ResizeWay way, const std::vector<ResizeAxis>& axes) {
    if (way.mode == "bilinear") way.mode = "linear";
    call.supports(is_known_way(way), "mode ", way.mode, " with coordinates ", way.coordinates,
                  " and rounding ", way.nearest, " is not supported");
    for (const ResizeAxis& one : axes)
        call.check(one.out >= 1 && one.out < (std::int64_t{1} << 30) && one.scale > 0, "a size of ",
                   one.out, " by a scale of ", one.scale);
    const std::string method = method_of_operator(way, call.shape(0), axes);
    if (!method.empty() && call.dtype(0) == DType::f32)
        return call.set(0, resized(call, way, method, axes));
    // Integers are rounded once, behind the last axis.
    const bool in_float = !is_float(call.dtype(0)) && way.mode != "nearest";
    Ref value = in_float ? call.build.cast(call.in(0), DType::f32) : call.in(0);
    for (const ResizeAxis& one : axes) {
        const bool whole = one.begin == 0 && one.end == 1;
        if (one.in != one.out || one.scale != 1 || !whole)
            value = multiplied(call, value, way, one);
    }
    call.set(0, call.build.cast(value, call.dtype(0)));
}

/// The axes that are resized, without sizes.
std::vector<ResizeAxis> resized_axes(Call& call) {
    const Shape& x = call.shape(0);
    Ints given = call.integers("axes");
    if (!call.given("axes"))
        for (int i = 0; i < x.rank(); ++i) given.push_back(i);
    std::vector<ResizeAxis> axes;
    for (const std::int64_t one : given) {
        const int axis = call.axis(one, x.rank());
        for (const ResizeAxis& other : axes)
            call.check(other.axis != axis, "axis ", axis, " stands twice");
        call.check(x[axis] > 0, "an input of shape ", x.str(), " has nothing to resize");
        axes.push_back({axis, x[axis], x[axis], 1, 0, 1});
    }
    return axes;
}

std::int64_t size_of_scale(const Call& call, const ResizeAxis& axis) {
    const double size = std::floor(scaled(axis.in, axis.scale));
    call.check(size >= 1 && size < 1e9, "a size of ", size);
    return static_cast<std::int64_t>(size);
}

void set_scales(const Call& call, const std::vector<double>& scales,
                std::vector<ResizeAxis>& axes) {
    call.check(scales.size() == axes.size(), "there are ", scales.size(), " scales for ",
               axes.size(), " axes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        axes[i].scale = scales[i];
        axes[i].out = size_of_scale(call, axes[i]);
    }
}

void set_sizes(const Call& call, const Ints& sizes, const std::string& policy,
               std::vector<ResizeAxis>& axes) {
    call.check(sizes.size() == axes.size(), "there are ", sizes.size(), " sizes for ", axes.size(),
               " axes");
    double least = 0, most = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        axes[i].out = sizes[i];
        axes[i].scale = static_cast<double>(sizes[i]) / static_cast<double>(axes[i].in);
        least = i == 0 ? axes[i].scale : std::min(least, axes[i].scale);
        most = std::max(most, axes[i].scale);
    }
    if (policy == "stretch") return;
    call.check(policy == "not_larger" || policy == "not_smaller", "keep_aspect_ratio_policy '",
               policy, "' is unknown");
    for (ResizeAxis& one : axes) {
        one.scale = policy == "not_larger" ? least : most;
        const double size = std::floor(static_cast<double>(one.in) * one.scale + 0.5);
        call.check(size >= 1 && size < 1e9, "a size of ", size);
        one.out = static_cast<std::int64_t>(size);
    }
}

void upsample_by(Call& call, const std::vector<double>& scales) {
    std::vector<ResizeAxis> axes = resized_axes(call);
    set_scales(call, scales, axes);
    interpolate(call, {call.text("mode", "nearest"), "asymmetric", "floor"}, axes);
}

void upsample(Call& call) {
    const Attribute* const scales = call.attribute("scales");
    const auto* const numbers = scales ? std::get_if<std::vector<double>>(&scales->data) : nullptr;
    call.check(numbers != nullptr, "attribute 'scales' is missing");
    upsample_by(call, *numbers);
}

void resize(Call& call) {
    ResizeWay way{call.text("mode", "nearest"),
                  call.text("coordinate_transformation_mode", "half_pixel"),
                  call.text("nearest_mode", "round_prefer_floor"),
                  call.number("cubic_coeff_a", -0.75),
                  call.number("extrapolation_value", 0),
                  call.integer("antialias", 0) != 0,
                  call.integer("exclude_outside", 0) != 0};
    std::vector<ResizeAxis> axes = resized_axes(call);
    const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
    if (call.has(2) && call.shape(2).numel() > 0)
        set_scales(call, call.known_numbers(2, "scales"), axes);
    else
        set_sizes(call, call.known_integers(3, "sizes"), policy, axes);
    if (way.coordinates == "tf_crop_and_resize") {
        const std::vector<double> region = call.known_numbers(1, "the region's bounds");
        call.check(region.size() == 2 * axes.size(), "roi has ", region.size(), " entries for ",
                   axes.size(), " axes");
        for (std::size_t i = 0; i < axes.size(); ++i) {
            axes[i].begin = region[i];
            axes[i].end = region[i + axes.size()];
            call.check(std::abs(axes[i].begin) < 1e9 && std::abs(axes[i].end) < 1e9,
                       "roi reaches from ", axes[i].begin, " to ", axes[i].end);
        }
    }
    interpolate(call, way, axes);
}

}  // namespace

std::vector<Rule> resize_rules() {
    return {
        {"Upsample", 7, upsample},
        {"Upsample", 9, [](Call& call) { upsample_by(call, call.known_numbers(1, "scales")); }},
        {"Resize", 10, [](Call& call) { upsample_by(call, call.known_numbers(1, "scales")); }},
        {"Resize", 11, resize},
    };
}

}  // namespace dlprim::onnx
