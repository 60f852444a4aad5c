// SPDX-License-Identifier: MIT
// RoiAlign, CropAndResize and DeformConv: images sampled at places that boxes or offsets give.
#include "formats/onnx/rules/sampling.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

/// What samples of a box: a grid of points in each of the output's cells.
struct RoiGrid {
    std::int64_t height, width;  ///< of the output
    std::int64_t rows, columns;  ///< of points in a cell, in the largest box
    double scale, offset;
    /// Where each box has as many points in a cell as the cell has elements: how many these are.
    std::vector<double> box_rows, box_columns;
};

/// By box: its begin and a cell's size along y (rows) or x, and how many points a cell has there.
struct RoiSide {
    Ref begin, cell, points;
};

RoiSide side_of(Builder& build, Ref boxes, const RoiGrid& grid, bool vertical) {
    const auto corner = [&](std::int64_t i) { return build.slice(boxes, 1, i, i + 1); };
    const std::int64_t cells = vertical ? grid.height : grid.width,
                       points = vertical ? grid.rows : grid.columns;
    const std::string size = cat("x1 * p0 - x0 * p0");
    const std::string code = cat("s = ", grid.offset > 0 ? size : cat("max(", size, ", 1)"),
                                 "; y0 = x0 * p0 - p1; y1 = s / p2; y2 = p3");
    const std::vector<Ref> made =
        build.add("Pointwise", {corner(vertical ? 1 : 0), corner(vertical ? 3 : 2)},
                  {{"code", code},
                   {"scalars", Doubles{grid.scale, grid.offset, static_cast<double>(cells),
                                       static_cast<double>(points)}}});
    const std::vector<double>& counts = vertical ? grid.box_rows : grid.box_columns;
    if (counts.empty()) return {made[0], made[1], made[2]};
    return {made[0], made[1],
            build.constant("", host_numbers({std::ssize(counts), 1}, counts, DType::f32))};
}

/// The coordinates of one dimension's points, [boxes, cells * points].
Ref points_of(Builder& build, const RoiSide& side, std::int64_t cells, std::int64_t points) {
    const auto spread = [&](Ref x) { return build.reshape(x, {x->spec.shape[0], 1, 1}); };
    const Ref at = build.pointwise_of({side.begin->spec.shape[0], cells, points},
                                      "y0 = x0 + (index(1) + (index(2) + 0.5) / x2) * x1",
                                      {spread(side.begin), spread(side.cell), spread(side.points)});
    return build.reshape(at, {side.begin->spec.shape[0], cells * points});
}

/// The weighted neighbours of all points, [boxes, height, rows, width, columns, C], or their
/// largest.
Ref at_points(Call& call, Ref image, Ref batches, Ref y, Ref x, bool largest) {
    Builder& build = call.build;
    const Shape& shape = image->spec.shape;
    const std::int64_t boxes = y->spec.shape[0], rows = y->spec.shape[1],
                       columns = x->spec.shape[1];
    const Ref table = image_table(build, image);
    y = build.reshape(y, {boxes, rows, 1});
    x = build.reshape(x, {boxes, 1, columns});
    batches = build.reshape(batches, {boxes, 1, 1});
    // p0 and p1 are the last row and the last column.
    const std::vector<double> ends{static_cast<double>(shape[2] - 1),
                                   static_cast<double>(shape[3] - 1)};
    Ref result = nullptr;
    for (int tap = 0; tap < 4; ++tap) {
        const auto neighbour = [&](const char* place, const char* end, bool upper) {
            // Beyond the last element there is but one, and before the first place the first one.
            const std::string v = cat("min(max(", place, ", 0), ", end, ")"),
                              low = cat("floor(", v, ")");
            return std::pair(
                upper ? cat("min(", low, " + 1, ", end, ")") : low,
                upper ? cat("(", v, " - ", low, ")") : cat("(1 - ", v, " + ", low, ")"));
        };
        const auto [yi, yw] = neighbour("x0", "p0", tap >= 2);
        const auto [xi, xw] = neighbour("x1", "p1", tap % 2 == 1);
        const char* const outside = "x0 < -1 || x0 > p0 + 1 || x1 < -1 || x1 > p1 + 1";
        const Ref row = build.pointwise(cat("y0 = ", yi), {y}, ends, DType::i32),
                  column = build.pointwise(cat("y0 = ", neighbour("x0", "p1", tap % 2 == 1).first),
                                           {x}, ends, DType::i32);
        const Ref at = build.pointwise("y0 = (x0 * (p0 + 1) + x1) * (p1 + 1) + x2",
                                       {batches, row, column}, ends, DType::i64);
        const Ref weight =
            build.pointwise(cat("y0 = ", outside, " ? 0 : ", yw, " * ", xw), {y, x}, ends);
        const Ref value = build.add1(
            "Embedding", {build.reshape(at, {boxes, rows, columns})},
            {{"num_embeddings", table->spec.shape[0]}, {"embedding_dim", table->spec.shape[1]}},
            {table});
        const Ref factor = build.reshape(weight, {boxes, rows, columns, 1});
        const char* const code = largest ? "y0 = max(x2, x0 * x1)" : "y0 = x2 + x0 * x1";
        result = result ? build.pointwise(code, {value, factor, result})
                        : build.pointwise("y0 = x0 * x1", {value, factor});
    }
    return result;
}

/// The points of the largest box's cells, where boxes have as many as their cells have elements.
void size_by_boxes(Call& call, RoiGrid& grid) {
    const std::vector<double> boxes = call.known_numbers(1, "the boxes");
    for (std::size_t i = 0; i + 3 < boxes.size(); i += 4) {
        // In float, as others do: the last digit may make another number of points.
        const auto points = [&](double begin, double end, std::int64_t cells) {
            const auto scale = static_cast<float>(grid.scale);
            float size = static_cast<float>(end) * scale - static_cast<float>(begin) * scale;
            if (grid.offset == 0) size = std::max(size, 1.0f);
            const float count = std::ceil(size / static_cast<float>(cells));
            call.supports(count <= 4096, "a box of size ", size, " is too large");
            return static_cast<double>(std::max(count, 0.0f));
        };
        grid.box_columns.push_back(points(boxes[i], boxes[i + 2], grid.width));
        grid.box_rows.push_back(points(boxes[i + 1], boxes[i + 3], grid.height));
        grid.columns = std::max(grid.columns, static_cast<std::int64_t>(grid.box_columns.back()));
        grid.rows = std::max(grid.rows, static_cast<std::int64_t>(grid.box_rows.back()));
    }
}

void roi_align(Call& call) {
    Builder& build = call.build;
    const Shape &x = call.shape(0), &boxes = call.shape(1);
    call.check(x.rank() == 4 && boxes.rank() == 2 && boxes[1] == 4, "an image of shape ", x.str(),
               " and boxes of shape ", boxes.str(), " do not fit");
    const std::string mode = call.text("mode", "avg");
    call.check(mode == "avg" || mode == "max", "mode '", mode, "' is unknown");
    const std::string transformation = call.text(
        "coordinate_transformation_mode", call.version() < 16 ? "output_half_pixel" : "half_pixel");
    const std::int64_t ratio = call.integer("sampling_ratio", 0);
    RoiGrid grid{call.integer("output_height", 1),
                 call.integer("output_width", 1),
                 std::max<std::int64_t>(ratio, 1),
                 std::max<std::int64_t>(ratio, 1),
                 call.number("spatial_scale", 1),
                 transformation == "half_pixel" ? 0.5 : 0,
                 {},
                 {}};
    constexpr std::int64_t most = 1 << 20;  // of cells and points along one side
    call.check(grid.height >= 1 && grid.height <= most && grid.width >= 1 && grid.width <= most &&
                   ratio >= 0 && ratio <= most,
               "an output of ", grid.height, " by ", grid.width, ", sampled ", ratio, " times");
    if (ratio == 0) size_by_boxes(call, grid);
    const Ref box = build.cast(call.in(1), DType::f32);
    const RoiSide vertical = side_of(build, box, grid, true),
                  horizontal = side_of(build, box, grid, false);
    const bool largest = mode == "max";
    Ref values = at_points(call, call.in(0), build.cast(call.in(2), DType::i64),
                           points_of(build, vertical, grid.height, grid.rows),
                           points_of(build, horizontal, grid.width, grid.columns), largest);
    values =
        build.reshape(values, {boxes[0] * grid.height, grid.rows, grid.width, grid.columns, x[1]});
    // Points that a smaller box does not have do not count.
    const auto spread = [&](Ref count) {
        const Ref all = build.pointwise_of({boxes[0], grid.height}, "y0 = x0", {count});
        return build.reshape(all, {boxes[0] * grid.height, 1, 1, 1, 1});
    };
    const std::string inside = "index(1) < x1 && index(3) < x2";
    Ref y = build.pointwise(largest ? cat("y0 = max[1,3](", inside, " ? x0 : -inf)")
                                    : cat("y0 = sum[1,3](", inside, " ? x0 / max(x1 * x2, 1) : 0)"),
                            {values, spread(vertical.points), spread(horizontal.points)});
    y = build.reshape(y, {boxes[0], grid.height, grid.width, x[1]});
    call.set(0, build.cast(build.transpose(y, {0, 3, 1, 2}), call.dtype(0)));
}

/// The coordinates [boxes, cells] of a crop's rows or columns, from the first element of the box to
/// its last; of a single one the middle.
Ref crop_places(Builder& build, Ref boxes, std::int64_t side, std::int64_t cells,
                std::int64_t size) {
    const Ref begin = build.slice(boxes, 1, side, side + 1),
              end = build.slice(boxes, 1, side + 2, side + 3);
    const std::string last = cat(size - 1);
    const std::string code = cells == 1 ? cat("y0 = 0.5 * (x0 + x1) * ", last)
                                        : cat("s = (x1 - x0) * ", last, " / ", cells - 1,
                                              "; y0 = index(1) == ", cells - 1, " ? x1 * ", last,
                                              " : x0 * ", last, " + index(1) * s");
    return build.pointwise_of({boxes->spec.shape[0], cells}, code, {begin, end});
}

/// com.microsoft's: boxes in parts of the image, and a value for places outside of it.
void crop_and_resize(Call& call) {
    Builder& build = call.build;
    const Shape &x = call.shape(0), &boxes = call.shape(1);
    call.check(x.rank() == 4 && boxes.rank() == 2 && boxes[1] == 4, "an image of shape ", x.str(),
               " and boxes of shape ", boxes.str(), " do not fit");
    const std::string mode = call.text("mode", "bilinear");
    call.check(mode == "bilinear" || mode == "nearest", "mode '", mode, "' is unknown");
    const Ints size = call.known_integers(3, "the crops' sizes");
    constexpr std::int64_t most = 1 << 20;
    call.check(
        size.size() == 2 && size[0] >= 1 && size[0] <= most && size[1] >= 1 && size[1] <= most,
        "crop_size is ", sizes_text(size));
    const Ref box = build.cast(call.in(1), DType::f32);
    const Ref rows = crop_places(build, box, 0, size[0], x[2]),
              columns = crop_places(build, box, 1, size[1], x[3]);
    const auto nearest = [&](Ref places) {
        return mode == "nearest" ? build.pointwise("y0 = floor(x0 + 0.5)", {places}) : places;
    };
    const Ref values = at_points(call, call.in(0), build.cast(call.in(2), DType::i64),
                                 nearest(rows), nearest(columns), false);
    const std::string outside = cat("x1 < 0 || x1 > ", x[2] - 1, " || x2 < 0 || x2 > ", x[3] - 1);
    const Ref y = build.pointwise(cat("y0 = ", outside, " ? p0 : x0"),
                                  {values, build.reshape(rows, {boxes[0], size[0], 1, 1}),
                                   build.reshape(columns, {boxes[0], 1, size[1], 1})},
                                  {call.number("extrapolation_value", 0)});
    call.set(0, build.cast(build.transpose(y, {0, 3, 1, 2}), call.dtype(0)));
}

/// Windows' elements at places moved by offsets, as channels of a convolution of single elements.
void deformable_convolution(Call& call) {
    Builder& build = call.build;
    const Shape &x = call.shape(0), &w = call.shape(1), &offset = call.shape(2);
    const std::int64_t groups = call.integer("group", 1), parts = call.integer("offset_group", 1);
    call.supports(x.rank() == 4, "images of ", x.rank() - 2, " dimensions are not supported");
    call.check(w.rank() == 4 && offset.rank() == 4 && groups >= 1 && x[1] == w[1] * groups &&
                   parts >= 1 && x[1] % parts == 0 && w[0] % groups == 0,
               "an input of shape ", x.str(), ", a weight of shape ", w.str(), " and ", groups,
               " groups do not fit");
    const Ints kernel = call.integers("kernel_shape", {w[2], w[3]}),
               stride = call.integers("strides", {1, 1}),
               dilation = call.integers("dilations", {1, 1}),
               pad = call.integers("pads", {0, 0, 0, 0});
    call.check(kernel == Ints({w[2], w[3]}) && stride.size() == 2 && dilation.size() == 2 &&
                   pad.size() == 4,
               "kernel_shape, strides, dilations or pads do not fit a weight of shape ", w.str());
    const std::int64_t elements = w[2] * w[3], rows = offset[2], columns = offset[3];
    call.check(offset[0] == x[0] && offset[1] == parts * elements * 2, "offsets of shape ",
               offset.str(), " do not fit");
    // [N * parts, kernel elements, 2, rows, columns].
    const Ref moves = build.reshape(build.cast(call.in(2), DType::f32),
                                    {x[0] * parts, elements, 2, rows, columns});
    std::vector<Ref> places;
    for (std::int64_t d = 0; d < 2; ++d) {
        const auto i = static_cast<std::size_t>(d);
        const Ref move = build.slice(moves, 2, d, d + 1);
        const std::string element =
            d == 0 ? cat("floor((index(1) + 0.5) / ", w[3], ")")
                   : cat("(index(1) - floor((index(1) + 0.5) / ", w[3], ") * ", w[3], ")");
        const Ref place = build.pointwise(cat("y0 = x0 + ", element, " * ", dilation[i],
                                              " + index(", 3 + d, ") * ", stride[i], " - ", pad[i]),
                                          {move});
        places.push_back(build.reshape(place, {x[0] * parts, elements * rows * columns, 1}));
    }
    const Ref image = build.reshape(call.in(0), {x[0] * parts, x[1] / parts, x[2], x[3]});
    Ref seen = build.transpose(sampled(call, image, places, {}), {0, 2, 1});
    if (call.has(4)) {
        const Ref mask = build.reshape(call.in(4), {x[0] * parts, 1, elements * rows * columns});
        seen = build.pointwise("y0 = x0 * x1", {seen, mask}, DType::f32);
    }
    seen = build.reshape(seen, {x[0], x[1] * elements, rows, columns});
    std::vector<Ref> params{
        build.reshape(build.cast(call.in(1), DType::f32), {w[0], w[1] * elements, 1, 1})};
    if (call.has(3)) params.push_back(build.cast(call.in(3), DType::f32));
    const Ref y = build.add1("Convolution", {seen},
                             {{"channels_in", x[1] * elements},
                              {"channels_out", w[0]},
                              {"groups", groups},
                              {"bias", call.has(3)},
                              {"kernel", Ints{1, 1}}},
                             params);
    call.set(0, build.cast(y, call.dtype(0)));
}

}  // namespace

std::vector<Rule> region_rules() {
    return {{"RoiAlign", 10, roi_align},
            {"DeformConv", 19, deformable_convolution},
            {"com.microsoft.CropAndResize", 1, crop_and_resize}};
}

}  // namespace dlprim::onnx
