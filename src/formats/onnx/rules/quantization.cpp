// SPDX-License-Identifier: MIT
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; see quantization.hpp.
#include "formats/onnx/rules/quantization.hpp"

#include "formats/onnx/rules/shared.hpp"
#include "formats/onnx/types.hpp"

#include <cmath>
#include <optional>

namespace dlprim::onnx {

namespace {

/// A narrow type in float, which programs compute with.
Ref in_numbers(Builder& build, Ref value) {
    return is_narrow(value->spec.dtype) ? build.cast(value, DType::f32) : value;
}

/// Whether a type is a float of 8 or 4 bits.
bool is_narrow_float(DType dtype) {
    return is_narrow(dtype) && dtype <= DType::f4e2m1;
}

/// Scale and, if there is one, zero point, as they broadcast to the first input.
struct Quantization {
    Ref scale, zero;

    explicit Quantization(Call& call) : zero(nullptr) {
        const Shape& x = call.shape(0);
        const std::int64_t given = call.integer("axis", 1), block = call.integer("block_size", 0);
        const bool single = call.shape(1).numel() == 1 && call.shape(1).rank() <= 1;
        const int axis = single ? 0 : call.axis(given, x.rank());
        scale = laid_over(call, in_numbers(call.build, call.in(1)), x, axis, block);
        if (!call.has(2)) return;
        call.check(call.shape(2).numel() == call.shape(1).numel(), "a zero point of shape ",
                   call.shape(2).str(), " for a scale of shape ", call.shape(1).str());
        zero = laid_over(call, in_numbers(call.build, call.in(2)), x, axis, block);
    }
};

/// Attribute output_dtype, where it is given and is not 0.
std::optional<DType> output_type(Call& call) {
    if (call.integer("output_dtype", 0) == 0) return std::nullopt;
    return call.type("output_dtype", DType::u8);
}

void quantize(Call& call) {
    const bool saturate = call.integer("saturate", 1) != 0;
    call.ignore("precision");  // quotients are float here, or double
    const std::optional<DType> wanted = output_type(call);
    const DType dtype = call.has(2) ? call.dtype(2) : wanted.value_or(DType::u8);
    call.check(!wanted || *wanted == dtype, "output_dtype is ", name_of(wanted.value_or(dtype)),
               ", the zero point is ", name_of(dtype));
    const Quantization by(call);
    std::vector<Ref> inputs{call.in(0), by.scale};
    if (by.zero) inputs.push_back(by.zero);
    if (is_narrow_float(dtype)) {
        call.supports(dtype != DType::f8e8m0, "a quantised tensor of ", name_of(dtype),
                      " is not supported");
        const Ref y = call.build.pointwise(by.zero ? "y0 = x0 / x1 + x2" : "y0 = x0 / x1", inputs,
                                           DType::f32);
        const bool bounded = saturate && dtype != DType::f4e2m1;
        return call.set(0, call.build.cast(bounded ? saturated(call.build, y, dtype) : y, dtype));
    }
    const auto [low, high] = quantized_range(call, dtype);
    if (is_narrow(dtype)) {
        const Ref y = call.build.pointwise(by.zero ? "y0 = min(max(round(x0 / x1) + x2, p0), p1)"
                                                   : "y0 = min(max(round(x0 / x1), p0), p1)",
                                           inputs, {low, high}, DType::f32);
        return call.set(0, call.build.cast(y, dtype));
    }
    call.set(0, call.build.pointwise(by.zero ? "y0 = min(max(round(x0 / x1) + x2, p0), p1)"
                                             : "y0 = min(max(round(x0 / x1), p0), p1)",
                                     inputs, {low, high}, dtype));
}

/// Notes that a matrix is made of known integers in blocks, if it is.
void note_blocks(Call& call, Ref made) {
    const std::int64_t block = call.integer("block_size", 0);
    const Shape& x = call.shape(0);
    const bool is_small = stored_bits(call.dtype(0)) <= 8 && !is_narrow_float(call.dtype(0));
    if (block == 0 || x.rank() != 2 || !is_small) return;
    const Builder::Dequantized from{call.in(0), call.in(1), call.has(2) ? call.in(2) : nullptr,
                                    call.axis(call.integer("axis", 1), 2), block};
    for (const Ref value : {from.integers, from.scale, from.zero})
        if (value && !value->known) return;
    // A number alone stands for all.
    if (call.shape(1).rank() != 2 || (from.zero && call.shape(2) != call.shape(1))) return;
    call.build.note(made, from);
}

void dequantize(Call& call) {
    const DType dtype = output_type(call).value_or(call.dtype(1));
    call.check(is_float(dtype), "the output is ", name_of(dtype), "; it must be a float");
    call.check(!is_float(call.dtype(0)), "the input is ", name_of(call.dtype(0)),
               "; it must be an integer");
    const Quantization by(call);
    std::vector<Ref> inputs{in_numbers(call.build, call.in(0)), by.scale};
    if (by.zero) inputs.push_back(by.zero);
    const Ref made =
        call.build.pointwise(by.zero ? "y0 = (x0 - x2) * x1" : "y0 = x0 * x1", inputs, dtype);
    note_blocks(call, made);
    call.set(0, made);
}

void dynamic_quantize(Call& call) {
    const Quantized made = dynamically_quantized(call.build, call.in(0));
    call.set(0, made.value);
    call.set(1, made.scale);
    call.set(2, made.zero);
}

}  // namespace

Ref laid_over(Call& call, Ref value, const Shape& x, int axis, std::int64_t block) {
    Builder& build = call.build;
    const Shape given = value->spec.shape;
    const auto refuse = [&](bool fits) {
        call.check(fits, "a scale or zero point of shape ", given.str(), " for an input of shape ",
                   x.str(), ", axis ", axis, " and block_size ", block);
    };
    if (given.numel() == 1 && given.rank() <= 1) return build.reshape(value, {});
    refuse(axis >= 0 && axis < x.rank() && block >= 0);
    if (block == 0) {
        refuse(given == Shape{x[axis]});
        Ints sizes(static_cast<std::size_t>(x.rank()), 1);
        sizes[static_cast<std::size_t>(axis)] = x[axis];
        return build.reshape(value, Shape(sizes));
    }
    refuse(given.rank() == x.rank() && block < (1 << 24));
    const std::int64_t blocks = given[axis];
    refuse(blocks == (x[axis] + block - 1) / block && given.with(axis, x[axis]) == x);
    Ints single = given.to_vector();
    single.insert(single.begin() + axis + 1, 1);
    Ints repeated = single;
    repeated[static_cast<std::size_t>(axis) + 1] = block;
    const Ref wide = build.pointwise_of(Shape(repeated), "y0 = x0",
                                        {build.reshape(value, Shape(single))}, value->spec.dtype);
    const Ref flat = build.reshape(wide, given.with(axis, blocks * block));
    if (blocks * block == x[axis]) return flat;
    return build.slice(flat, axis, 0, x[axis]);
}

Ref single_number(Call& call, int i) {
    call.check(call.shape(i).numel() == 1, "input ", i, " has shape ", call.shape(i).str(),
               "; it must be one number");
    return call.build.reshape(call.in(i), {});
}

Ref zero_point(Call& call, int i, DType dtype) {
    if (!call.has(i)) return call.build.constant("", host_integers({}, {0}, dtype));
    call.check(call.dtype(i) == dtype, "a zero point is ", name_of(call.dtype(i)), " for ",
               name_of(dtype));
    return single_number(call, i);
}

Quantized quantized_input(Call& call, int i) {
    return {call.in(i), single_number(call, i + 1), zero_point(call, i + 2, call.dtype(i))};
}

Ref dequantized(Builder& build, const Quantized& x) {
    return build.pointwise("y0 = (x0 - x2) * x1", {x.value, x.scale, x.zero}, DType::f32);
}

Ref requantized(Call& call, Ref numbers, Ref scale, Ref zero) {
    const auto [low, high] = quantized_range(call, zero->spec.dtype);
    return call.build.pointwise("y0 = min(max(round(x0 / x1) + x2, p0), p1)",
                                {numbers, scale, zero}, {low, high}, zero->spec.dtype);
}

Quantized dynamically_quantized(Builder& build, Ref x) {
    const std::vector<Ref> ends =
        build.add("Pointwise", {x}, {{"code", "y0 = min[](x0); y1 = max[](x0)"}});
    const Ref low = build.reshape(ends[0], {}), high = build.reshape(ends[1], {});
    const Ref scale =
        build.pointwise("s = (max(x1, 0) - min(x0, 0)) / 255; y0 = s == 0 ? 1 : s", {low, high});
    const Ref zero =
        build.pointwise("y0 = round(min(max(-min(x0, 0) / x1, 0), 255))", {low, scale}, DType::u8);
    return {
        build.pointwise("y0 = min(max(round(x0 / x1) + x2, 0), 255)", {x, scale, zero}, DType::u8),
        scale, zero};
}

std::pair<double, double> quantized_range(const Call& call, DType dtype) {
    const bool is_signed =
        dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i4 || dtype == DType::i2;
    call.supports(is_signed || dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u4 ||
                      dtype == DType::u2,
                  "a quantised tensor of ", name_of(dtype), " is not supported");
    const double numbers = std::exp2(stored_bits(dtype));
    return is_signed ? std::pair(-numbers / 2, numbers / 2 - 1) : std::pair(0.0, numbers - 1);
}

std::vector<Rule> quantization_rules() {
    return {
        {"QuantizeLinear", 10, quantize},
        {"DequantizeLinear", 10, dequantize},
        {"DynamicQuantizeLinear", 11, dynamic_quantize},
        {"com.microsoft.QuantizeLinear", 1, quantize},
        {"com.microsoft.DequantizeLinear", 1, dequantize},
    };
}

}  // namespace dlprim::onnx
