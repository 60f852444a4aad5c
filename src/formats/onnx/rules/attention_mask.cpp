// SPDX-License-Identifier: MIT
// Masks of attention; see attention.hpp.
#include "formats/onnx/rules/attention.hpp"
#include "formats/onnx/types.hpp"

#include <cmath>
#include <limits>

namespace dlprim::onnx {

Ref AttentionMask::padded(Builder& build, std::int64_t keys) const {
    const std::int64_t missing = keys - given->spec.shape[-1];
    if (missing <= 0) return given;
    const bool truth = given->spec.dtype == DType::boolean;
    const Ref numbers = truth ? build.cast(given, DType::f32) : given;
    const Ref wide = build.add1("Pad", {numbers},
                                {{"pads", Ints{0, missing}},
                                 {"mode", "constant"},
                                 {"value", truth ? 0 : -std::numeric_limits<double>::infinity()}});
    return truth ? build.cast(wide, DType::boolean) : wide;
}

std::string AttentionMask::bias(Builder& build, std::int64_t keys, std::vector<Ref>& inputs,
                                Doubles& numbers) const {
    std::vector<std::string> conditions;
    std::string added = "0", position = "(index(2) + p0)";
    numbers.push_back(static_cast<double>(offset));
    if (lengths) {
        const std::string length = cat("x", inputs.size());
        inputs.push_back(lengths);
        conditions.push_back("index(3) < " + length);
        position = cat("(index(2) + ", length, " - size(2))");
    }
    if (given) {
        const std::string name = cat("x", inputs.size());
        inputs.push_back(padded(build, keys));
        if (given->spec.dtype == DType::boolean)
            conditions.push_back(name);
        else
            added = name;
    }
    if (causal) conditions.push_back(cat("index(3) <= ", position));
    if (left >= 0) conditions.push_back(cat(position, " - index(3) <= ", left));
    if (right >= 0) conditions.push_back(cat("index(3) - ", position, " <= ", right));
    if (conditions.empty()) return added;
    return cat("select(", join(conditions, " && "), ", ", added, ", -inf)");
}

MaskedScores AttentionMask::apply(Builder& build, Ref scores, std::int64_t keys) const {
    if (!given && only_given()) return {scores, nullptr};
    std::vector<Ref> inputs{scores};
    Doubles numbers;
    const std::string code = bias(build, keys, inputs, numbers);
    const std::string type(name_of(scores->spec.dtype));
    const std::vector<Ref> made =
        build.add("Pointwise", inputs,
                  {{"code", cat("b = ", code, "; y0 = x0 + b; y1 = max[3](b)")},
                   {"scalars", std::move(numbers)},
                   {"dtypes", Strings{type, type}}});
    return {made[0], made[1]};
}

Ref AttentionMask::for_operator(Builder& build, std::int64_t queries, std::int64_t keys,
                                DType dtype, Attrs& options) const {
    AttentionMask rest = *this;
    const bool lower = offset != 0 && offset == keys - queries;
    if (!lengths && (offset == 0 || lower)) {
        const bool is_causal = causal || right == 0;
        if (lower && (is_causal || left >= 0)) options.set("lower_right", true);
        if (is_causal) options.set("is_causal", true);
        if (left >= 0) options.set("sliding_window", left + 1);
        rest.causal = false;
        rest.left = -1;
        if (is_causal) rest.right = -1;
    }
    if (rest.only_given()) {
        if (!given) return nullptr;
        const Ref mask = padded(build, keys);
        return mask->spec.dtype == DType::boolean ? mask : build.cast(mask, dtype);
    }
    std::vector<Ref> inputs;
    Doubles numbers;
    const std::string code = rest.bias(build, keys, inputs, numbers);
    if (inputs.empty()) inputs.push_back(build.constant("", host_numbers({1}, {0}, dtype)));
    return build.pointwise_of({1, 1, queries, keys}, "y0 = " + code, inputs, dtype, numbers);
}

Ref masked_softmax(Builder& build, const MaskedScores& masked, DType dtype) {
    const Ref scores = build.cast(masked.scores, dtype);
    const Ref weights = build.add1("Softmax", {scores}, {{"axis", 3}});
    if (!masked.top) return weights;
    return build.pointwise("y0 = isinf(x1) && x1 < 0 ? 0 : x0", {weights, masked.top}, dtype);
}

Ref product(Builder& build, Ref a, Ref b, bool transpose_b, double scale) {
    const DType dtype = a->spec.dtype;
    if (is_float(dtype) && dtype != DType::f64)
        return build.add1("MatMul", {a, b}, {{"transpose_b", transpose_b}, {"alpha", scale}});
    // Every product of elements is summed where it is made.
    const auto with_one = [&](Ref x, int at) {
        Ints sizes = x->spec.shape.to_vector();
        sizes.insert(sizes.end() + at, 1);
        return build.reshape(x, Shape(sizes));
    };
    const Ref rows = with_one(a, transpose_b ? -1 : 0), columns = with_one(b, -2);
    Ref sum = nullptr;
    if (transpose_b)
        sum = build.pointwise("y0 = sum[-1](x0 * x1)", {rows, columns}, dtype);
    else
        sum = build.pointwise("y0 = sum[-2](x0 * x1)", {rows, columns}, dtype);
    const Shape& shape = sum->spec.shape;
    Ints sizes = shape.to_vector();
    sizes.erase(sizes.end() - (transpose_b ? 1 : 2));
    sum = build.reshape(sum, Shape(sizes));
    return scale == 1 ? sum : build.pointwise("y0 = x0 * p0", {sum}, {scale}, dtype);
}

Ref scaled_product(Builder& build, Ref q, Ref k, double scale) {
    const DType dtype = q->spec.dtype;
    if (size_of(dtype) > 2 || scale < 0) return product(build, q, k, true, scale);
    const Ref root =
        build.cast(build.constant("", host_numbers({}, {std::sqrt(scale)}, dtype)), DType::f32);
    const auto times = [&](Ref x) { return build.pointwise("y0 = x0 * x1", {x, root}, dtype); };
    return product(build, times(q), times(k), true, 1);
}

DType precision_type(Call& call, std::int64_t number) {
    const std::optional<DType> dtype = dtype_of(number);
    call.check(dtype && is_float(*dtype), "softmax_precision ", number, " is no float type");
    return *dtype;
}

}  // namespace dlprim::onnx
