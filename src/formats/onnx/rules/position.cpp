// SPDX-License-Identifier: MIT
// Operators that compare positions: where the largest element is, one-hot rows, triangles, and sums
// and products up to each place.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Positions are computed in float where the elements are floats.
constexpr std::int64_t most_positions = 1 << 24;

/// The place along `axis` of the first or last extreme, with that axis kept at size 1. A NaN is an
/// extreme, as in numpy.
Ref extreme_position(Call& call, Ref value, int axis, const char* extreme, bool last) {
    call.supports(value->spec.shape[axis] < most_positions, "axis ", axis, " of shape ",
                  value->spec.shape.str(), " is too long");
    Builder& build = call.build;
    const Ref top = build.pointwise(cat("y0 = ", extreme, "[", axis, "](x0)"), {value});
    const std::string found = "x0 == x1 || x0 != x0 ? index(" + cat(axis) + ") : ";
    const std::string code = last ? cat("y0 = max[", axis, "](", found, "-1)")
                                  : cat("y0 = min[", axis, "](", found, "size(", axis, "))");
    return build.pointwise(code, {value, top}, DType::i64);
}

void arg_extreme(Call& call, const char* extreme) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", 0), x.rank());
    const bool keep = call.integer("keepdims", 1) != 0;
    const Ref position = extreme_position(call, call.in(0), axis, extreme,
                                          call.integer("select_last_index", 0) != 0);
    Ints sizes = x.with(axis, 1).to_vector();
    if (!keep) sizes.erase(sizes.begin() + axis);
    call.set(0, call.build.reshape(position, Shape(sizes)));
}

/// `positions` has size 1 along the axis, where the result has `shape`: 1 at the position.
Ref one_hot(Call& call, Ref positions, int axis, const Shape& shape, DType dtype) {
    return call.build.pointwise_of(shape, cat("y0 = x0 == index(", axis, ")"), {positions}, dtype);
}

void hardmax(Call& call, bool flat) {
    const Shape& x = call.shape(0);
    int axis = call.axis(call.integer("axis", flat ? 1 : -1), x.rank());
    Ref value = call.in(0);
    if (x.empty()) return call.set(0, value);
    if (flat) {  // before opset 13 the dimensions from the axis on are one
        value = call.build.reshape(value, {x.product(0, axis), x.product(axis, x.rank())});
        axis = 1;
    }
    const Ref position = extreme_position(call, value, axis, "max", false);
    value = one_hot(call, position, axis, value->spec.shape, call.dtype(0));
    call.set(0, call.build.reshape(value, x));
}

void one_hot_encoding(Call& call) {
    const Shape& indices = call.shape(0);
    const std::vector<double> depths = call.known_numbers(1, "the depth's elements");
    call.check(depths.size() == 1, "the depth is no single number");
    call.check(depths[0] >= 1, "a depth of ", depths[0]);
    call.supports(depths[0] < most_positions, "a depth of ", depths[0], " is too large");
    const auto depth = static_cast<std::int64_t>(depths[0]);
    call.check(call.shape(2).numel() == 2, "values has shape ", call.shape(2).str(),
               ", it holds the values of no match and of a match");
    const int axis = call.axis(call.integer("axis", -1), indices.rank() + 1);
    Ints sizes = indices.to_vector();
    sizes.insert(sizes.begin() + axis, 1);
    Builder& build = call.build;
    const Ref at = build.reshape(call.in(0), Shape(sizes));
    const auto value = [&](std::int64_t i) {
        return build.slice(build.reshape(call.in(2), {2}), 0, i, i + 1);
    };
    call.set(0, build.pointwise_of(Shape(sizes).with(axis, depth),
                                   cat("t = x0 < 0 ? x0 + size(", axis, ") : x0; y0 = t == index(",
                                       axis, ") ? x2 : x1"),
                                   {at, value(0), value(1)}, call.dtype(2)));
}

void triangle(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 2, "an input of shape ", x.str(), " holds no matrices");
    const bool upper = call.integer("upper", 1) != 0;
    std::vector<Ref> inputs{call.in(0)};
    std::string diagonal = "0";
    if (call.has(1)) {
        call.check(call.shape(1).numel() == 1, "k is no single number");
        inputs.push_back(call.build.reshape(call.in(1), {}));
        diagonal = "x1";
    }
    const std::string code = cat("y0 = index(", x.rank() - 1, ") - index(", x.rank() - 2,
                                 upper ? ") >= " : ") <= ", diagonal, " ? x0 : 0");
    call.set(0, call.build.pointwise(code, inputs, call.dtype(0)));
}

void eye_like(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 2, "an input of shape ", x.str(), " is no matrix");
    call.supports(x.numel() <= most_positions, "a constant of shape ", x.str(), " is too large");
    const std::int64_t k = call.integer("k", 0);
    const DType dtype = call.type("dtype", call.dtype(0));
    call.build.claim(x, DType::i64);
    Ints values(static_cast<std::size_t>(x.numel()), 0);
    for (std::int64_t row = 0; row < x[0]; ++row) {
        if (k < -row || k >= x[1] - row) continue;
        values[static_cast<std::size_t>(row * x[1] + row + k)] = 1;
    }
    std::vector<double> numbers(values.begin(), values.end());
    call.set(0, call.build.constant("", host_numbers(x, numbers, dtype)));
}

/// The value moved by `by` places along the axis, with `filling` in the places that become free.
Ref moved(Builder& build, Ref value, int axis, std::int64_t by, bool towards_front,
          double filling) {
    const Shape& shape = value->spec.shape;
    const std::int64_t left = shape[axis] - by;
    const Ref kept =
        build.slice(value, axis, towards_front ? by : 0, towards_front ? shape[axis] : left);
    Ints pads(2 * static_cast<std::size_t>(shape.rank() - axis), 0);  // from the last dimension on
    pads[pads.size() - (towards_front ? 1 : 2)] = by;
    return build.add1("Pad", {kept}, {{"pads", pads}, {"mode", "constant"}, {"value", filling}});
}

/// Sums or products (`sign` is + or *) of 1, 2, 4, ... neighbours: as many operations on whole
/// tensors as a size has digits in base 2. `neutral` changes nothing that it is combined with.
void cumulative(Call& call, const char* sign, double neutral) {
    const Shape& x = call.shape(0);
    const Ints axes = call.known_integers(1, "the axis");
    call.check(axes.size() == 1, "the axis is no single number");
    const int axis = call.axis(axes[0], x.rank());
    const bool exclusive = call.integer("exclusive", 0) != 0,
               reverse = call.integer("reverse", 0) != 0;
    Builder& build = call.build;
    const DType type = call.dtype(0);
    Ref value = call.in(0);
    const std::int64_t size = x[axis];
    if (exclusive)
        value = size > 1 ? moved(build, value, axis, 1, reverse, neutral)
                         : build.pointwise(cat("y0 = ", neutral), {value}, type);
    const std::string code = cat("y0 = x0 ", sign, " x1");
    for (std::int64_t step = 1; step < size; step *= 2) {
        const Ref other = moved(build, value, axis, step, reverse, neutral);
        value = build.pointwise(code, {value, other}, type);
    }
    call.set(0, value);
}

}  // namespace

std::vector<Rule> position_rules() {
    return {
        {"ArgMax", 1, [](Call& call) { arg_extreme(call, "max"); }},
        {"ArgMin", 1, [](Call& call) { arg_extreme(call, "min"); }},
        {"Hardmax", 1, [](Call& call) { hardmax(call, true); }},
        {"Hardmax", 13, [](Call& call) { hardmax(call, false); }},
        {"OneHot", 9, one_hot_encoding},
        {"Trilu", 14, triangle},
        {"com.microsoft.Trilu", 1, triangle},
        {"EyeLike", 9, eye_like},
        {"CumProd", 26, [](Call& call) { cumulative(call, "*", 1); }},
        {"CumSum", 11, [](Call& call) { cumulative(call, "+", 0); }},
    };
}

}  // namespace dlprim::onnx
