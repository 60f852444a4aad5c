// SPDX-License-Identifier: MIT
// Random problems: operators that move data or change its view.
#include "support/random_draft.hpp"

#include <algorithm>

namespace dlprim::testing {

namespace {

void pad(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(2, 4), 8);
    const std::string mode = dice.of<std::string>({"constant", "reflect", "replicate", "circular"});
    Json pads = Json::array();
    const std::int64_t padded =
        dice.pick(1, std::min<std::int64_t>(3, static_cast<std::int64_t>(shape.size()) - 1));
    for (std::int64_t i = 0; i < padded; ++i) {
        const std::int64_t size = shape[shape.size() - 1 - static_cast<std::size_t>(i)];
        for (int side = 0; side < 2; ++side)
            pads.push_back(dice.pick(0, mode == "reflect"    ? std::min<std::int64_t>(3, size - 1)
                                        : mode == "circular" ? std::min<std::int64_t>(3, size)
                                                             : 3));
    }
    draft.options = {{"pads", pads}, {"mode", mode}};
    if (mode == "constant") draft.maybe("value", dice.number(-2, 2));
    draft.input(shape);
}

void slice(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 4), 9);
    const std::int64_t dim = dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
    const std::int64_t size = shape[static_cast<std::size_t>(dim)], begin = dice.pick(0, size - 1);
    draft.options = {{"dim", dim}, {"begin", begin}};
    draft.maybe("end", dice.pick(begin + 1, size));
    draft.input(shape);
}

void permute(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(2, 5), 7);
    std::vector<std::int64_t> order;
    for (std::size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1],
                  order[static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(i) - 1))]);
    draft.options = {{"dims", order}};
    draft.input(shape);
}

/// Draws data and indices of any mode, and returns the shape of what they name.
std::vector<std::int64_t> indexed(Draft& draft) {
    Dice& dice = draft.dice;
    const auto rank = dice.pick(1, 4);
    std::vector<std::int64_t> data = dice.dims(rank, 8), named;
    const std::string mode = dice.of<std::string>({"rows", "elements", "tuples", "dims"});
    const std::int64_t dim = dice.pick(0, rank - 1);
    const auto at = data.begin() + dim;
    std::vector<std::int64_t> indices = dice.dims(dice.pick(0, 2), 5);
    std::int64_t classes = *at;
    draft.options = {{"mode", mode}};
    if (mode == "rows") {
        named.assign(data.begin(), at);
        named.insert(named.end(), indices.begin(), indices.end());
        named.insert(named.end(), at + 1, data.end());
    } else if (mode == "elements") {
        indices.clear();
        for (const std::int64_t size : data) indices.push_back(dice.pick(1, size));
        indices[static_cast<std::size_t>(dim)] = dice.pick(1, 9);
        named = indices;
    } else if (mode == "dims") {
        Json dims = Json::array();
        std::vector<std::int64_t> others;
        std::int64_t first = -1, last = -1;
        for (std::int64_t d = 0; d < rank; ++d) {
            const std::int64_t size = data[static_cast<std::size_t>(d)];
            if (d != dim && dice.coin()) {
                others.push_back(size);
                continue;
            }
            dims.push_back(d);
            classes = std::min(classes, size);
            last = d;
            if (first < 0) first = d;
        }
        const bool beside = last - first + 1 == static_cast<std::int64_t>(dims.size());
        named = others;
        named.insert(named.begin() + (beside ? first : 0), indices.begin(), indices.end());
        indices.push_back(static_cast<std::int64_t>(dims.size()));
        draft.options["dims"] = dims;
    } else {
        named = indices;
        indices.push_back(dim + 1);
        classes = *std::min_element(data.begin(), at + 1);
        named.insert(named.end(), at + 1, data.end());
    }
    if (mode == "rows" || mode == "elements") draft.options["dim"] = dice.coin() ? dim : dim - rank;
    draft.input(data);
    const bool from_end = dice.coin();
    if (!from_end) draft.options["from_end"] = false;
    CaseTensor& tensor = draft.input(indices, from_end ? "indices" : "labels");
    tensor.classes = classes;
    tensor.dtype = dice.of<DType>({DType::i32, DType::i64});
    return named;
}

void scatter(Draft& draft) {
    const std::vector<std::int64_t> updates = indexed(draft);
    const std::string how =
        draft.dice.of<std::string>({"none", "add", "add", "mul", "max", "min", "mean"});
    draft.options["reduction"] = how;
    draft.maybe("include_self", draft.dice.coin());
    draft.one.gradient = how == "none" || how == "add" || how == "mean";
    draft.input(updates);
}

void topk(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 3), 30);
    const std::int64_t dim = dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
    draft.options = {{"k", dice.pick(1, shape[static_cast<std::size_t>(dim)])}, {"dim", dim}};
    draft.maybe("largest", dice.coin());
    draft.maybe("sorted", dice.coin());
    CaseTensor& x = draft.input(shape, dice.of<std::string>({"normal", "equal", "labels"}));
    x.classes = 5;
}

void sort(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 3), 30);
    draft.options = {{"dim", dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1)}};
    draft.maybe("descending", dice.coin());
    draft.input(shape, dice.of<std::string>({"normal", "labels"})).classes = 5;
}

void arg_reduce(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 4), 12);
    draft.options = {{"method", dice.of<std::string>({"max", "min"})}};
    draft.maybe("dim", dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1));
    draft.maybe("keep_dim", dice.coin());
    draft.input(shape, dice.of<std::string>({"normal", "equal", "labels"})).classes = 5;
}

void scan(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 3), 9);
    const std::string method =
        dice.of<std::string>({"sum", "sum", "prod", "max", "min", "logsumexp"});
    draft.options = {{"method", method},
                     {"dim", dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1)}};
    draft.maybe("reverse", dice.coin());
    if (method == "sum" || method == "prod") draft.maybe("exclusive", dice.coin());
    draft.input(shape, method == "max" || method == "min" ? "labels" : "normal").classes = 5;
}

void nonzero(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 5), 6);
    draft.maybe("size", dice.pick(0, 40));
    draft.maybe("flat", dice.coin());
    draft.one.gradient = false;
    draft.input(shape, "labels").classes = 3;
}

void flip(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 5), 6);
    Json dims = Json::array();
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (dice.coin()) dims.push_back(d);
    draft.options = {{"dims", dims}};
    draft.input(shape);
}

}  // namespace

Generators movement_generators() {
    using D = Draft&;
    return {
        {"Concat",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(1, 4), 8);
             const std::int64_t dim = d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
             d.options["dim"] = dim;
             for (std::int64_t i = d.dice.pick(1, 4); i > 0; --i) {
                 shape[static_cast<std::size_t>(dim)] = d.dice.of<std::int64_t>({1, 3, 5, 16});
                 d.input(shape);
             }
         }},
        {"Split",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(1, 4), 8);
             const std::int64_t dim = d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1),
                                parts = d.dice.pick(1, 4);
             shape[static_cast<std::size_t>(dim)] = parts * d.dice.pick(1, 4);
             d.options = {{"dim", dim}, {"parts", parts}};
             d.input(shape);
         }},
        {"Slice", slice},
        {"Flatten", [](D d) { d.input(d.dice.dims(d.dice.pick(2, 5), 6)); }},
        {"Reshape",
         [](D d) {
             const auto shape = d.dice.dims(d.dice.pick(2, 4), 6);
             d.options["dims"] =
                 d.dice.coin() ? Json::array({0, -1}) : Json::array({-1, shape.back()});
             d.input(shape);
         }},
        {"Squeeze",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(2, 5), 5);
             for (auto& size : shape)
                 if (d.dice.coin()) size = 1;
             d.input(shape);
         }},
        {"Gather", [](D d) { indexed(d); }},
        {"Scatter", scatter},
        {"TopK", topk},
        {"Sort", sort},
        {"ArgReduce", arg_reduce},
        {"Scan", scan},
        {"Nonzero", nonzero},
        {"Flip", flip},
        {"Transpose", permute},
        {"Pad", pad},
        {"Parameter", [](D d) { d.options["shape"] = d.dice.dims(d.dice.pick(1, 4), 9); }},
        {"Cast",
         [](D d) {
             CaseTensor& x = d.input(d.dice.dims(d.dice.pick(1, 3), 9), "uniform");
             x.min = 0;
             x.max = 100;
             x.dtype = d.dice.of<DType>({DType::f32, DType::i32, DType::u8, DType::i64});
             d.options["dtype"] =
                 d.dice.of<std::string>({"float", "int32", "int64", "uint8", "int16"});
             d.one.gradient = false;
         }},
    };
}

}  // namespace dlprim::testing
