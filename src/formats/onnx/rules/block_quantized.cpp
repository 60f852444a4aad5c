// SPDX-License-Identifier: MIT
// Operators of com.microsoft on weights of 2, 4 or 8 bits, several in a byte, with a scale and a
// zero point for each block of a row. Constants are stored in blocks of the library's, or are taken
// apart once.
#include "formats/onnx/rules/product_weight.hpp"
#include "formats/onnx/rules/quantization.hpp"
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

/// The integers in bytes [..., n], the low bits first, as uint8 [..., n * 8 / bits].
Ref unpacked(Builder& build, Ref bytes, std::int64_t bits) {
    if (bits == 8) return bytes;
    Ints sizes = bytes->spec.shape.to_vector();
    const std::int64_t each = 8 / bits, last = sizes.back();
    sizes.push_back(1);
    const Ref single = build.reshape(bytes, Shape(sizes));
    sizes.back() = each;
    const std::string code = cat("y0 = bitand(shr(x0, index(", sizes.size() - 1, ") * ", bits,
                                 "), ", (1 << bits) - 1, ")");
    const Ref parts = build.pointwise_of(Shape(sizes), code, {single}, DType::u8);
    sizes.pop_back();
    sizes.back() = last * each;
    return build.reshape(parts, Shape(sizes));
}

std::int64_t bits_of(Call& call) {
    const std::int64_t bits = call.integer("bits", 4);
    call.supports(bits == 2 || bits == 4 || bits == 8, "weights of ", bits,
                  " bits are not supported");
    return bits;
}

/// Half the range, which stands for 0 where the node has no zero points.
Ref usual_zero(Builder& build, std::int64_t bits) {
    return build.constant("", host_integers({}, {std::int64_t{1} << (bits - 1)}, DType::u8));
}

struct Weights {
    std::int64_t rows, columns, bits, block, blocks;

    explicit Weights(Call& call)
        : rows(call.integer("N", 0)),
          columns(call.integer("K", 0)),
          bits(bits_of(call)),
          block(call.integer("block_size", 0)),
          blocks(0) {
        call.check(rows >= 1 && columns >= 1 && columns < (std::int64_t{1} << 40) && block >= 1 &&
                       block < (1 << 24) && block * bits % 8 == 0,
                   "N is ", rows, ", K is ", columns, " and block_size is ", block);
        blocks = (columns + block - 1) / block;
    }
};

Ref reshaped(Call& call, int i, const Shape& wanted) {
    call.check(call.shape(i).numel() == wanted.numel(), "input ", i, " has shape ",
               call.shape(i).str(), "; it must have the elements of ", wanted.str());
    return call.build.reshape(call.in(i), wanted);
}

/// Zero points [rows, blocks], or one number. They are bytes, packed as weights are, or numbers.
Ref zero_points(Call& call, const Weights& w) {
    if (!call.has(3)) return usual_zero(call.build, w.bits);
    if (call.dtype(3) != DType::u8) return reshaped(call, 3, {w.rows, w.blocks});
    const std::int64_t bytes = (w.blocks * w.bits + 7) / 8;
    return call.build.slice(unpacked(call.build, reshaped(call, 3, {w.rows, bytes}), w.bits), 1, 0,
                            w.blocks);
}

/// Scale or zero points [rows, blocks] over [rows, columns]: by blocks of neighbours, or as an
/// input says for each column.
Ref over_columns(Call& call, Ref value, const Weights& w) {
    if (value->spec.shape.rank() == 0) return value;
    if (!call.has(4)) return laid_over(call, value, {w.rows, w.columns}, 1, w.block);
    const Shape& given = call.shape(4);
    call.check(given.rank() == 1 && given[0] >= w.columns, "g_idx has shape ", given.str(), " for ",
               w.columns, " columns");
    return gather_computed(call, value, call.build.slice(call.in(4), 0, 0, w.columns), 1);
}

std::vector<float> known_floats(Ref value) {
    std::vector<float> values(static_cast<std::size_t>(value->spec.shape.numel()));
    convert(value->known->data.data(), value->spec.dtype, values.data(), DType::f32, values.size());
    return values;
}

/// Zero points [rows, blocks] of constants.
std::vector<float> known_zeros(Call& call, const Weights& w) {
    const auto usual = static_cast<float>(std::int64_t{1} << (w.bits - 1));
    std::vector<float> zeros(static_cast<std::size_t>(w.rows * w.blocks), usual);
    if (!call.has(3)) return zeros;
    if (call.dtype(3) != DType::u8) return known_floats(reshaped(call, 3, {w.rows, w.blocks}));
    const std::int64_t bytes = (w.blocks * w.bits + 7) / 8;
    const Ref packed = reshaped(call, 3, {w.rows, bytes});
    for (std::int64_t row = 0; row < w.rows; ++row)
        for (std::int64_t block = 0; block < w.blocks; ++block) {
            const std::int64_t at = row * bytes + block * w.bits / 8;
            const auto byte =
                std::to_integer<int>(packed->known->data[static_cast<std::size_t>(at)]);
            zeros[static_cast<std::size_t>(row * w.blocks + block)] =
                static_cast<float>(byte >> (block * w.bits % 8) & ((1 << w.bits) - 1));
        }
    return zeros;
}

/// Constants in blocks that hold them exactly. Nothing if there are none.
std::optional<ProductWeight> stored_in_blocks(Call& call, const Weights& w) {
    const Ref scales = reshaped(call, 2, {w.rows, w.blocks});
    const bool is_known = call.in(1)->known && scales->known && (!call.has(3) || call.in(3)->known);
    if (!is_known || call.has(4)) return std::nullopt;
    IntegerWeight weight;
    weight.rows = w.rows;
    weight.columns = w.columns;
    weight.block = w.block;
    weight.integers = call.in(1);
    weight.bits = static_cast<int>(w.bits);
    weight.row_step = w.blocks * w.block;
    weight.column_step = 1;
    weight.scales = known_floats(scales);
    weight.zeros = known_zeros(call, w);
    return in_blocks(call, weight);
}

ProductWeight weight_of(Call& call, const Weights& w) {
    Builder& build = call.build;
    const Ref bytes = reshaped(call, 1, {w.rows, w.blocks * (w.block * w.bits / 8)});
    if (auto weight = stored_in_blocks(call, w)) return *weight;
    const Ref codes = build.slice(unpacked(build, bytes, w.bits), 1, 0, w.columns);
    const Ref scales = over_columns(call, reshaped(call, 2, {w.rows, w.blocks}), w),
              zeros = over_columns(call, zero_points(call, w), w);
    return ProductWeight::of_floats(
        build.pointwise("y0 = (x0 - x2) * x1", {codes, scales, zeros}, call.dtype(0)));
}

/// A [..., K] times the transpose of weights [N, K], perhaps plus a bias [N].
void matmul_nbits(Call& call) {
    const Weights w(call);
    call.ignore("accuracy_level");  // products are float here
    call.supports(call.integer("weight_prepacked", 0) == 0, "packed weights are not supported");
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 1 && x[-1] == w.columns, "the input has shape ", x.str(), ", K is ",
               w.columns);
    call.check(call.dtype(1) == DType::u8, "the weights are ", name_of(call.dtype(1)),
               "; they must be uint8");
    Builder& build = call.build;
    const ProductWeight weight = weight_of(call, w);
    const Ref bias = call.has(5) ? reshaped(call, 5, {w.rows}) : nullptr;
    const Ref rows = build.reshape(call.in(0), {x.product(0, x.rank() - 1), w.columns}, 0);
    const Ref y = inner_product(build, rows, weight, bias);
    call.set(0, build.reshape(y, x.with(x.rank() - 1, w.rows), 0));
}

/// Rows of quantised data, and then their numbers.
void gather_block_quantized(Call& call) {
    const std::int64_t bits = bits_of(call), block = call.integer("block_size", 128);
    const Shape& data = call.shape(0);
    const int gathered = call.axis(call.integer("gather_axis", 0), data.rank());
    int quantized = call.axis(call.integer("quantize_axis", 1), data.rank());
    const bool packed = call.dtype(0) == DType::u8;
    call.check(packed ? gathered == 0 && quantized == data.rank() - 1 && quantized > 0
                      : call.dtype(0) == DType::i4 || call.dtype(0) == DType::u4,
               "data of ", name_of(call.dtype(0)), " and shape ", data.str(), ", gather_axis ",
               gathered, " and quantize_axis ", quantized);
    call.supports(gathered != quantized,
                  "blocks along the axis that is gathered are not supported");
    call.check(call.shape(2).rank() == data.rank() &&
                   (!call.has(3) || call.shape(3).rank() == data.rank()),
               "scales or zero points have not as many dimensions as data of shape ", data.str());
    Builder& build = call.build;
    const auto rows = [&](int i) {
        return gather_computed(call, call.in(i), call.in(1), gathered);
    };
    const auto numbers = [&](Ref value) {
        return packed ? unpacked(build, value, bits) : build.cast(value, DType::f32);
    };
    if (quantized > gathered) quantized += call.shape(1).rank() - 1;
    const Ref codes = numbers(rows(0)), scales = rows(2);
    const std::int64_t blocks = scales->spec.shape[quantized];
    const auto over = [&](Ref value) {
        return laid_over(call, value, codes->spec.shape, quantized, block);
    };
    std::vector<Ref> inputs{codes, over(scales)};
    if (call.has(3))
        inputs.push_back(over(build.slice(numbers(rows(3)), quantized, 0, blocks)));
    else if (packed)
        inputs.push_back(usual_zero(build, bits));
    call.set(0, build.pointwise(inputs.size() > 2 ? "y0 = (x0 - x2) * x1" : "y0 = x0 * x1", inputs,
                                call.dtype(2)));
}

}  // namespace

std::vector<Rule> block_quantized_rules() {
    return {
        {"com.microsoft.GatherBlockQuantized", 1, gather_block_quantized},
        {"com.microsoft.MatMulNBits", 1, matmul_nbits},
    };
}

}  // namespace dlprim::onnx
