// SPDX-License-Identifier: MIT
// Products and convolutions of quantised factors. Sums are exact integers (exact_products.hpp).
#include "formats/onnx/rules/exact_products.hpp"
#include "formats/onnx/rules/quantization.hpp"

namespace dlprim::onnx {

namespace {

/// What stands for each row, [m], as a column [m, 1]; anything else as it is.
Ref as_column(Call& call, Ref value, const Shape& matrix) {
    const Shape& given = value->spec.shape;
    if (given.rank() != 1 || given[0] == 1 || matrix.rank() < 2) return value;
    call.check(given[0] == matrix[-2], "a scale or zero point of shape ", given.str(),
               " for a factor of shape ", matrix.str());
    return call.build.reshape(value, {given[0], 1});
}

/// What stands for each output channel, [out], as it broadcasts to a tensor of `rank` dimensions
/// whose dimension `axis` the channels are; one number as a tensor of rank 0.
Ref by_channel(Call& call, Ref value, std::int64_t channels, int axis, int rank) {
    const Shape& given = value->spec.shape;
    if (given.numel() == 1) return call.build.reshape(value, {});
    call.check(given == Shape{channels}, "a scale or zero point of shape ", given.str(), " for ",
               channels, " channels");
    Ints sizes(static_cast<std::size_t>(rank), 1);
    sizes[static_cast<std::size_t>(axis)] = channels;
    return call.build.reshape(value, Shape(sizes));
}

Ref input_or_none(const Call& call, int i) {
    return call.has(i) ? call.in(i) : nullptr;
}

/// Sums of products times their scale, in another scale: rounded, moved by the zero point, and kept
/// in the type's range.
Ref rescaled(Call& call, Ref sums, Ref left_scale, Ref right_scale, Ref scale, Ref zero) {
    const DType dtype = zero->spec.dtype;
    call.supports(!is_narrow(dtype), "a product of ", name_of(dtype), " is not supported");
    const auto [low, high] = quantized_range(call, dtype);
    return call.build.pointwise("y0 = min(max(round(x0 * (x1 * x2 / x3)) + x4, p0), p1)",
                                {sums, left_scale, right_scale, scale, zero}, {low, high}, dtype);
}

/// The product of quantised factors as int32, or as float, rounded once; a zero point of 0 may be
/// null.
Ref product(Call& call, Ref a, Ref a_zero, Ref b, Ref b_zero, DType dtype) {
    return exact_matmul(call,
                        shifted(call, a, a_zero ? as_column(call, a_zero, a->spec.shape) : nullptr),
                        shifted(call, b, b_zero), dtype);
}

void matmul_integer(Call& call) {
    call.set(0, product(call, call.in(0), input_or_none(call, 2), call.in(1),
                        input_or_none(call, 3), DType::i32));
}

void matmul_integer_to_float(Call& call) {
    const Ref sums = product(call, call.in(0), input_or_none(call, 4), call.in(1),
                             input_or_none(call, 5), DType::f32);
    call.set(0, scaled(call.build, sums, as_column(call, call.in(2), call.shape(0)), call.in(3),
                       input_or_none(call, 6)));
}

void dynamic_quantized_matmul(Call& call) {
    const Quantized a = dynamically_quantized(call.build, call.in(0));
    const Ref sums = product(call, a.value, a.zero, call.in(1), input_or_none(call, 3), DType::f32);
    call.set(0, scaled(call.build, sums, a.scale, call.in(2), input_or_none(call, 4)));
}

/// alpha * A B + C in the integers of A and B, as numbers, or in another scale where one is given.
void quantized_gemm(Call& call) {
    const double alpha = call.number("alpha", 1);
    const auto factor = [&](int i, const char* transposes) {
        call.check(call.shape(i).rank() == 2, "a factor has shape ", call.shape(i).str(),
                   "; it must be a matrix");
        const bool turns = call.integer(transposes, 0) != 0;
        return turns ? call.build.transpose(call.in(i), {1, 0}) : call.in(i);
    };
    const Ref a = factor(0, "transA"), b = factor(3, "transB");
    Ref sums = product(call, a, single_number(call, 2), b, call.in(5),
                       call.has(6) ? DType::i32 : DType::f32);
    if (call.has(6)) {
        call.check(call.dtype(6) == DType::i32, "C is ", name_of(call.dtype(6)),
                   "; it must be int32");
        sums = call.build.pointwise("y0 = x0 + x1", {sums, call.in(6)}, DType::i32);
    }
    Ref scale = single_number(call, 1);
    if (alpha != 1) scale = call.build.pointwise("y0 = x0 * p0", {scale}, {alpha});
    call.set(0, call.has(7) ? rescaled(call, sums, scale, call.in(4), single_number(call, 7),
                                       zero_point(call, 8, call.dtype(0)))
                            : scaled(call.build, sums, scale, call.in(4), nullptr));
}

void quantized_matmul(Call& call) {
    const Ref sums = product(call, call.in(0), call.in(2), call.in(3), call.in(5), DType::f32);
    const Shape& y = sums->spec.shape;
    call.set(0, rescaled(call, sums, as_column(call, call.in(1), call.shape(0)), call.in(4),
                         as_column(call, call.in(6), y), as_column(call, call.in(7), y)));
}

/// The int32 convolution of the inputs x and w with their zero points, as [n, out, h, w].
Ref convolved(Call& call, int x, int x_zero, int w, int w_zero, int& dims) {
    const Shape &image = call.shape(x), &weight = call.shape(w);
    const std::int64_t groups = call.integer("group", 1);
    call.check(image.rank() == weight.rank() && image.rank() >= 3, "an input of shape ",
               image.str(), " and a weight of shape ", weight.str(), " do not fit");
    call.check(groups >= 1 && groups <= image[1] && image[1] == weight[1] * groups,
               "the input has ", image[1], " channels, a weight of shape ", weight.str(), " and ",
               groups, groups == 1 ? " group" : " groups", " want ", weight[1] * groups);
    const auto window = weight.dims().subspan(2);
    const Ints kernel(window.begin(), window.end());
    const Windows windows(call, image, kernel);
    check_dims(call, windows, image, 2);
    dims = windows.dims;
    Ref x_shift = input_or_none(call, x_zero), w_shift = input_or_none(call, w_zero);
    if (x_shift) {
        call.check(x_shift->spec.shape.numel() == 1, "the input's zero point has shape ",
                   x_shift->spec.shape.str(), "; it must be one number");
        x_shift = call.build.reshape(x_shift, {});
    }
    if (w_shift) w_shift = by_channel(call, w_shift, weight[0], 0, 4);
    return exact_convolution(call, shifted(call, as_image(call, call.in(x)), x_shift),
                             shifted(call, as_image(call, call.in(w)), w_shift), windows, groups);
}

void convolution_integer(Call& call) {
    int dims = 0;
    const Ref sums = convolved(call, 0, 2, 1, 3, dims);
    call.set(0, from_image(call, sums, dims));
}

void quantized_convolution(Call& call) {
    int dims = 0;
    Ref sums = convolved(call, 0, 2, 3, 5, dims);
    const std::int64_t out = sums->spec.shape[1];
    if (call.has(8)) {
        call.check(call.dtype(8) == DType::i32, "the bias is ", name_of(call.dtype(8)),
                   "; it must be int32");
        sums = call.build.pointwise("y0 = x0 + x1", {sums, by_channel(call, call.in(8), out, 1, 4)},
                                    DType::i32);
    }
    const auto number = [&](int i) { return by_channel(call, call.in(i), 1, 0, 0); };
    const Ref y = rescaled(call, sums, number(1), by_channel(call, call.in(4), out, 1, 4),
                           number(6), number(7));
    call.set(0, from_image(call, y, dims));
}

/// Attention of the numbers that quantised input and weights stand for. Scale and zero point of the
/// weights are one number, or one for each column.
void quantized_attention(Call& call) {
    Builder& build = call.build;
    const Quantized x{call.in(0), single_number(call, 3), zero_point(call, 6, call.dtype(0))};
    const auto of_columns = [&](int i) {
        const bool single = call.shape(i).numel() == 1;
        return single ? build.reshape(call.in(i), {}) : call.in(i);
    };
    const Ref zero = call.has(7) ? of_columns(7) : zero_point(call, 7, call.dtype(1));
    const Ref weights = dequantized(build, {call.in(1), of_columns(4), zero});
    std::vector<AnyValue> inputs{dequantized(build, x), weights, call.in(2), call.value(5),
                                 call.value(8)};
    Attributes attributes;
    for (const char* const name : {"do_rotary", "mask_filter_value", "num_heads",
                                   "past_present_share_buffer", "scale", "unidirectional"})
        if (const Attribute* const given = call.attribute(name)) attributes.emplace(name, *given);
    const std::vector<Ref> made =
        call.made_by("com.microsoft.Attention", 1, std::move(inputs), std::move(attributes),
                     static_cast<std::size_t>(call.outputs()));
    for (int i = 0; i < call.outputs(); ++i)
        if (made[static_cast<std::size_t>(i)]) call.set(i, made[static_cast<std::size_t>(i)]);
}

}  // namespace

std::vector<Rule> integer_product_rules() {
    return {
        {"MatMulInteger", 10, matmul_integer},
        {"ConvInteger", 10, convolution_integer},
        {"QLinearMatMul", 10, quantized_matmul},
        {"QLinearConv", 10, quantized_convolution},
        {"com.microsoft.DynamicQuantizeMatMul", 1, dynamic_quantized_matmul},
        {"com.microsoft.MatMulIntegerToFloat", 1, matmul_integer_to_float},
        {"com.microsoft.QAttention", 1, quantized_attention},
        {"com.microsoft.QGemm", 1, quantized_gemm},
    };
}

}  // namespace dlprim::onnx
