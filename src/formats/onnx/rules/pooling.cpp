// SPDX-License-Identifier: MIT
// Pooling by windows and of whole images.
#include "formats/onnx/rules/windows.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Positions of maxima in their images as positions in the whole tensor, of which elements of an
/// image lie rows first or (storage_order) columns first.
Ref in_tensor(Call& call, Ref positions, const Shape& image, bool columns_first) {
    std::string code, place = cat(columns_first ? "0" : "x0");
    std::vector<double> sizes{static_cast<double>(image.product(2, image.rank()))};
    const auto number = [&](std::int64_t size) {
        sizes.push_back(static_cast<double>(size));
        return cat("p", sizes.size() - 1);
    };
    for (int i = image.rank() - 1; columns_first && i >= 2; --i) {
        const std::string rest = i == image.rank() - 1 ? "x0" : cat("rest", i + 1);
        const std::string size = number(image[i]);
        code += cat("rest", i, " = floordiv(", rest, ", ", size, "); ");
        place += cat(" + (", rest, " - rest", i, " * ", size, ") * ", number(image.product(2, i)));
    }
    return call.build.pointwise(
        cat(code, "y0 = ", place, " + (index(0) * size(1) + index(1)) * p0"), {positions}, sizes,
        DType::i64);
}

/// Windows that a file gives, as Pooling's options.
Attrs options_of(Call& call, const Windows& windows, const char* mode) {
    return {{"mode", mode},
            {"kernel", windows.kernel},
            {"stride", windows.stride},
            {"pad", windows.pad},
            {"dilate", windows.dilation},
            {"ceil_mode", call.integer("ceil_mode", 0) != 0}};
}

void pool(Call& call, const char* mode) {
    const Windows windows(call, call.shape(0), {});
    check_dims(call, windows, call.shape(0), 3);
    // Floats hold integers of one byte exactly.
    call.supports(is_float(call.dtype(0)) || size_of(call.dtype(0)) == 1, "an image of ",
                  name_of(call.dtype(0)), " is not supported");
    Ref image = as_image(call, call.in(0));
    if (!is_float(call.dtype(0))) image = call.build.cast(image, DType::f32);
    Attrs options = options_of(call, windows, mode);
    if (call.integer("count_include_pad", 0) != 0) options.set("count_include_pad", true);
    if (call.wants(1)) options.set("positions", "image");
    const std::vector<Ref> made = call.build.add("Pooling", {image}, options);
    call.set(0, call.build.cast(from_image(call, made[0], windows.dims), call.dtype(0)));
    if (call.wants(1))
        call.set(1, from_image(call,
                               in_tensor(call, made[1], image->spec.shape,
                                         call.integer("storage_order", 0) != 0),
                               windows.dims));
}

/// The p-norm of each window's elements.
void lp_pool(Call& call) {
    const Windows windows(call, call.shape(0), {});
    const auto p = static_cast<double>(call.integer("p", 2));
    call.check(p >= 1, "p is ", p);
    check_dims(call, windows, call.shape(0), 3);
    Builder& build = call.build;
    const Ref powers = build.pointwise(p == 1   ? "y0 = abs(x0)"
                                       : p == 2 ? "y0 = x0 * x0"
                                                : "y0 = pow(abs(x0), p0)",
                                       {as_image(call, call.in(0))}, {p});
    const Ref sum = build.add1("Pooling", {powers},
                               options_of(call, windows, "avg").set("divisor_override", 1));
    const Ref norm = p == 1 ? sum : build.pointwise("y0 = pow(x0, p0)", {sum}, {1 / p});
    call.set(0, from_image(call, norm, windows.dims));
}

void lp_pool_all(Call& call) {
    const Shape& x = call.shape(0);
    const auto p = static_cast<double>(call.integer("p", 2));
    call.check(p >= 1 && x.rank() >= 3, "p is ", p, " and the input has shape ", x.str());
    std::vector<std::string> axes;
    for (int i = 2; i < x.rank(); ++i) axes.push_back(cat(i));
    const Ref sum = call.build.pointwise(cat("y0 = sum[", join(axes, ","), "](pow(abs(x0), p0))"),
                                         {call.in(0)}, {p});
    call.set(0, call.build.pointwise("y0 = pow(x0, p0)", {sum}, {1 / p}));
}

/// [N, C, ...] -> [N, C, 1, ...].
void pool_all(Call& call, const char* mode) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 3, "an input of shape ", x.str(), " holds no images");
    Ref value = call.in(0);
    if (x.rank() != 4) value = call.build.reshape(value, {x[0], x[1], 1, x.product(2, x.rank())});
    value = call.build.add1("Pooling", {value}, {{"mode", mode}, {"global", true}});
    Ints kept = x.to_vector();
    std::fill(kept.begin() + 2, kept.end(), 1);
    call.set(0, call.build.reshape(value, Shape(kept)));
}

}  // namespace

std::vector<Rule> pooling_rules() {
    return {
        {"MaxPool", 1, [](Call& call) { pool(call, "max"); }},
        {"AveragePool", 1, [](Call& call) { pool(call, "avg"); }},
        {"LpPool", 2, lp_pool},
        {"GlobalLpPool", 2, lp_pool_all},
        {"GlobalMaxPool", 1, [](Call& call) { pool_all(call, "max"); }},
        {"GlobalAveragePool", 1, [](Call& call) { pool_all(call, "avg"); }},
    };
}

}  // namespace dlprim::onnx
