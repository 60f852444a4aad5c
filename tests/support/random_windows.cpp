// SPDX-License-Identifier: MIT
// Random problems: operators that read images through windows: convolution, pooling and resizing.
#include "support/random_draft.hpp"

#include <algorithm>

namespace dlprim::testing {

namespace {

/// A size or one for each of `dims` dimensions.
Json one_or_all(Dice& dice, std::int64_t dims, std::int64_t low, std::int64_t high) {
    if (dice.coin()) return dice.pick(low, high);
    Json all = Json::array();
    for (std::int64_t i = 0; i < dims; ++i) all.push_back(dice.pick(low, high));
    return all;
}

std::int64_t at(const Json& value, int axis) {
    return value.is_array() ? value[static_cast<std::size_t>(axis)].get<std::int64_t>()
                            : value.get<std::int64_t>();
}

/// Images of two dimensions most often. Volumes are small, as every element meets many.
void convolution(Draft& draft, bool transposed) {
    Dice& dice = draft.dice;
    const std::int64_t dims = dice.of<std::int64_t>({1, 2, 2, 2, 2, 3});
    const bool small = dims == 3;
    const std::int64_t groups = dice.of<std::int64_t>({1, 1, 1, 2, 3, small ? 2 : 8});
    const std::int64_t in =
        groups * dice.of<std::int64_t>({1, 1, 2, 3, small ? 1 : 5, small ? 2 : 16});
    const std::int64_t out =
        groups * dice.of<std::int64_t>({1, 1, 2, small ? 3 : 4, small ? 1 : 7, small ? 2 : 16});
    const Json kernel = one_or_all(dice, dims, 1, small ? 3 : 5),
               stride = one_or_all(dice, dims, 1, small ? 2 : 3),
               dilate = one_or_all(dice, dims, 1, 2);
    std::vector<std::int64_t> shape{dice.pick(1, small ? 2 : 3), in};
    Json pad = Json::array();
    for (int axis = 0; axis < dims; ++axis) {
        const std::int64_t span = (at(kernel, axis) - 1) * at(dilate, axis) + 1;
        pad.push_back(dice.pick(0, std::min<std::int64_t>(2, at(kernel, axis) - 1)));
        shape.push_back(transposed ? dice.pick(2, small ? 5 : 8)
                                   : span + dice.pick(0, small ? 4 : 9));
    }
    draft.options = {{"channels_out", out}, {"kernel", kernel}, {"groups", groups}, {"pad", pad}};
    draft.maybe("stride", stride);
    if (dice.pick(0, 2) == 0) draft.options["dilate"] = dilate;
    draft.maybe("bias", dice.coin());
    if (dice.pick(0, 2) == 0) draft.options["activation"] = dice.of(activations());
    draft.input(shape);
}

/// One window for each plane, which may have any position in it.
void pooling_gradient(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t height = dice.pick(1, 6), width = dice.pick(1, 6);
    draft.one.gradient = false;
    draft.options = {{"kernel", {height, width}}, {"sizes", {height, width}}};
    const std::vector<std::int64_t> shape{dice.pick(1, 3), dice.of<std::int64_t>({1, 3, 8, 17}), 1,
                                          1};
    draft.input(shape);
    draft.labels(shape, height * width).dtype = dice.coin() ? DType::i64 : DType::i32;
}

/// [N, C] and one to three dimensions of images, of which a kernel may take `least`.
std::vector<std::int64_t> images(Dice& dice, std::int64_t dims, std::int64_t least) {
    std::vector<std::int64_t> shape{dice.pick(1, 2), dice.of<std::int64_t>({1, 3, 5})};
    for (std::int64_t i = 0; i < dims; ++i) shape.push_back(least + dice.pick(0, 6));
    return shape;
}

/// Windows, the parts of images, or whole images. Two dimensions come most often, since they have
/// the most engines.
void pooling(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t dims = dice.of<std::int64_t>({1, 2, 2, 2, 3});
    const bool average = dice.coin();
    draft.options["mode"] = average ? "avg" : "max";
    const int kind = static_cast<int>(dice.pick(0, 6));
    if (kind == 0) {
        draft.options["global"] = true;
    } else if (kind == 1) {
        Json output = Json::array();
        for (std::int64_t i = 0; i < dims; ++i) output.push_back(dice.pick(1, 9));
        draft.options["output"] = output;
    } else {
        Json kernel = Json::array(), stride = Json::array(), pad = Json::array();
        for (int i = 0; i < dims; ++i) {
            kernel.push_back(dice.pick(1, 4));
            stride.push_back(dice.pick(1, 3));
            pad.push_back(dice.pick(0, at(kernel, i) / 2));
        }
        draft.options["kernel"] = kernel;
        draft.options["pad"] = pad;
        draft.maybe("stride", stride);
        draft.maybe("ceil_mode", dice.coin());
        if (average) {
            draft.maybe("count_include_pad", dice.coin());
            if (dice.pick(0, 3) == 0) draft.options["divisor_override"] = dice.pick(1, 9);
        }
        if (dice.pick(0, 3) == 0) draft.options["dilate"] = dice.pick(1, 2);
    }
    if (!average && kind > 0 && dice.coin()) draft.options["positions"] = "image";
    std::vector<std::int64_t> shape = images(dice, dims, 7);
    shape[1] = dice.of<std::int64_t>({1, 3, 8, 17});
    draft.input(shape, "distinct");
}

void resize(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t dims = dice.pick(1, 3);
    const std::string method =
        dice.of<std::string>({"nearest", "nearest-exact", "linear", "cubic"});
    draft.options = {{"method", method}};
    Json output = Json::array(), scales = Json::array();
    for (std::int64_t i = 0; i < dims; ++i) {
        output.push_back(dice.pick(1, 9));
        scales.push_back(dice.number(1, 3));
    }
    if (dice.coin())
        draft.options["output"] = output;
    else
        draft.options["scales"] = scales;
    if (method == "linear" || method == "cubic") {
        draft.maybe("align_corners", dice.coin());
        if (dice.pick(0, 2) == 0) draft.options["antialias"] = true;
    }
    std::vector<std::int64_t> shape = images(dice, dims, 1);
    shape[1] = dice.of<std::int64_t>({1, 3, 16, 21});  // 16 fills a block
    draft.input(shape);
}

void grid_sample(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t n = dice.pick(1, 2);
    draft.maybe("mode", dice.of<std::string>({"bilinear", "nearest", "bicubic"}));
    draft.maybe("padding_mode", dice.of<std::string>({"zeros", "border", "reflection"}));
    draft.maybe("align_corners", dice.coin());
    draft.input({n, dice.pick(1, 3), dice.pick(2, 7), dice.pick(2, 7)});
    CaseTensor& places = draft.input({n, dice.pick(1, 5), dice.pick(1, 5), 2}, "uniform");
    places.min = -1.5;
    places.max = 1.5;
}

/// A window's options for images of `height` and `width`, and how many windows fit.
std::int64_t columns(Draft& draft, std::int64_t height, std::int64_t width) {
    Dice& dice = draft.dice;
    const std::int64_t sizes[] = {height, width};
    std::int64_t windows = 1;
    for (const std::int64_t size : sizes) {
        const std::int64_t pad = dice.pick(0, 2), dilate = dice.pick(1, 2),
                           stride = dice.pick(1, 3);
        const std::int64_t kernel = dice.pick(1, (size + 2 * pad - 1) / dilate + 1);
        draft.options["kernel"].push_back(kernel);
        draft.options["stride"].push_back(stride);
        draft.options["pad"].push_back(pad);
        draft.options["dilate"].push_back(dilate);
        windows *= (size + 2 * pad - (kernel - 1) * dilate - 1) / stride + 1;
    }
    return windows;
}

void unfold(Draft& draft) {
    const std::vector<std::int64_t> shape = images(draft.dice, 2, 1);
    columns(draft, shape[2], shape[3]);
    draft.input(shape);
}

void fold(Draft& draft) {
    const std::vector<std::int64_t> shape = images(draft.dice, 2, 1);
    const std::int64_t windows = columns(draft, shape[2], shape[3]);
    draft.options["output"] = {shape[2], shape[3]};
    const Json& kernel = draft.options["kernel"];
    draft.input({shape[0], shape[1] * at(kernel, 0) * at(kernel, 1), windows});
}

}  // namespace

Generators window_generators() {
    using D = Draft&;
    return {
        {"Convolution", [](D d) { convolution(d, false); }},
        {"TransposedConvolution", [](D d) { convolution(d, true); }},
        {"Pooling", pooling},
        {"PoolingBackward", pooling_gradient},
        {"Resize", resize},
        {"GridSample", grid_sample},
        {"Unfold", unfold},
        {"Fold", fold},
    };
}

}  // namespace dlprim::testing
