// SPDX-License-Identifier: MIT
// Pooling by windows and of whole images.
#include "formats/onnx/rules/pooling_positions.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::onnx {

namespace {

/// An element's place in its image, rows first or (storage_order) columns first.
Ints stored_places(const WindowPositions& positions, const Shape& image, bool columns_first) {
    if (!columns_first) return positions.at;
    Ints places;
    for (std::int64_t flat : positions.at) {
        std::int64_t place = 0;
        for (int i = image.rank() - 1; i >= 2; --i) {
            const std::int64_t in_front = image.product(2, i);  // sizes of faster dimensions
            place += flat % image[i] * in_front;
            flat /= image[i];
        }
        places.push_back(place);
    }
    return places;
}

/// The maxima of all windows, and where they are in the whole tensor.
void max_by_positions(Call& call, const Windows& windows, Ref image, bool ceil_mode,
                      bool columns_first) {
    constexpr double lowest = -std::numeric_limits<double>::infinity();
    Builder& build = call.build;
    const Shape& shape = image->spec.shape;
    const WindowPositions positions = window_positions(call, windows, shape, ceil_mode, false);
    const Ref elements = window_elements(call, image, positions, lowest);
    const Ref top = build.pointwise("y0 = max[0](x0)", {elements});
    const Ref pooled = as_pooled(call, top, shape, positions);
    call.set(0, build.cast(from_image(call, pooled, windows.dims), call.dtype(0)));
    if (!call.wants(1)) return;
    const Ref first = build.pointwise("y0 = min[0](x0 == x1 || x0 != x0 ? index(0) : size(0))",
                                      {elements, top}, {}, "int64");
    const auto outputs = static_cast<std::int64_t>(positions.counts.size());
    build.claim({positions.elements, outputs}, DType::i64);
    const Ref places =
        build.constant("", host_integers({positions.elements, outputs, 1},
                                         stored_places(positions, shape, columns_first)));
    const Ref place =
        build.pointwise("y0 = sum[0](index(0) == x0 ? x1 : 0)", {first, places}, {}, "int64");
    const Ref whole = build.pointwise(cat("y0 = x0 + index(2) * ", shape.product(2, shape.rank())),
                                      {place}, {}, "int64");
    call.set(1, from_image(call, as_pooled(call, whole, shape, positions), windows.dims));
}

void average_by_positions(Call& call, const Windows& windows, Ref image, bool ceil_mode,
                          bool count_padding) {
    Builder& build = call.build;
    const Shape& shape = image->spec.shape;
    const WindowPositions positions =
        window_positions(call, windows, shape, ceil_mode, count_padding);
    const Ref sum =
        build.pointwise("y0 = sum[0](x0)", {window_elements(call, image, positions, 0)});
    const auto outputs = static_cast<std::int64_t>(positions.counts.size());
    const Ref counts = build.constant(
        "", host_numbers({outputs, 1},
                         std::vector<double>(positions.counts.begin(), positions.counts.end()),
                         DType::f32));
    const Ref mean = build.pointwise("y0 = x0 / x1", {sum, counts});
    call.set(0, build.cast(from_image(call, as_pooled(call, mean, shape, positions), windows.dims),
                           call.dtype(0)));
}

/// Windows' elements are read one by one where Pooling2D does not have the windows.
void pool(Call& call, const char* mode) {
    const Windows windows(call, call.shape(0), {});
    const bool average = std::string_view(mode) == "avg";
    const bool columns_first = call.integer("storage_order", 0) != 0;
    const bool ceil_mode = call.integer("ceil_mode", 0) != 0;
    const bool count_padding = average && call.integer("count_include_pad", 0) != 0;
    // Floats hold integers of one byte exactly.
    call.supports(is_float(call.dtype(0)) || size_of(call.dtype(0)) == 1, "an image of ",
                  name_of(call.dtype(0)), " is not supported");
    Ref image = as_image(call, call.in(0));
    if (!is_float(call.dtype(0))) image = call.build.cast(image, DType::f32);
    const bool plain = std::all_of(windows.dilation.begin(), windows.dilation.end(),
                                   [](std::int64_t d) { return d == 1; });
    if (windows.dims > 2 || !plain || call.wants(1)) {
        if (average) return average_by_positions(call, windows, image, ceil_mode, count_padding);
        return max_by_positions(call, windows, image, ceil_mode, columns_first);
    }
    Attrs options{{"mode", std::string(mode)},
                  {"kernel", windows.kernel},
                  {"stride", windows.stride},
                  {"pad", windows.pad},
                  {"ceil_mode", ceil_mode}};
    if (average) options.set("count_include_pad", count_padding);
    const Ref y = call.build.add1("Pooling2D", {image}, options);
    call.set(0, call.build.cast(from_image(call, y, windows.dims), call.dtype(0)));
}

/// The p-norm of each window's elements.
void lp_pool(Call& call) {
    const Windows windows(call, call.shape(0), {});
    const auto p = static_cast<double>(call.integer("p", 2));
    call.check(p >= 1, "p is ", p);
    const Ref image = as_image(call, call.in(0));
    const Shape& shape = image->spec.shape;
    const WindowPositions positions =
        window_positions(call, windows, shape, call.integer("ceil_mode", 0) != 0, false);
    Builder& build = call.build;
    const Ref sum = build.pointwise(p == 1   ? "y0 = sum[0](abs(x0))"
                                    : p == 2 ? "y0 = sum[0](x0 * x0)"
                                             : "y0 = sum[0](pow(abs(x0), p0))",
                                    {window_elements(call, image, positions, 0)}, {p});
    const Ref norm = p == 1 ? sum : build.pointwise("y0 = pow(x0, p0)", {sum}, {1 / p});
    call.set(0, from_image(call, as_pooled(call, norm, shape, positions), windows.dims));
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
    value = call.build.add1("GlobalPooling", {value}, {{"mode", std::string(mode)}});
    Ints kept = x.to_vector();
    std::fill(kept.begin() + 2, kept.end(), 1);
    call.set(0, call.build.reshape(value, Shape(kept)));
}

const Rule pooling_table[] = {
    {"MaxPool", 1, [](Call& call) { pool(call, "max"); }},
    {"AveragePool", 1, [](Call& call) { pool(call, "avg"); }},
    {"LpPool", 2, lp_pool},
    {"GlobalLpPool", 2, lp_pool_all},
    {"GlobalMaxPool", 1, [](Call& call) { pool_all(call, "max"); }},
    {"GlobalAveragePool", 1, [](Call& call) { pool_all(call, "avg"); }},
};

}  // namespace

std::span<const Rule> pooling_rules() {
    return pooling_table;
}

}  // namespace dlprim::onnx
