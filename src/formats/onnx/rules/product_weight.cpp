// SPDX-License-Identifier: MIT
// Integers with scales and zero points become blocks; see product_weight.hpp.
#include "formats/onnx/rules/product_weight.hpp"

#include "base/blocks.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "formats/onnx/types.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dlprim::onnx {

namespace {

/// All types that weights are stored in have blocks of so many.
constexpr std::int64_t block_size = 32;

bool is_half(float value) {
    return std::isfinite(value) && half_to_float(float_to_half(value)) == value;
}

int integer_at(const IntegerWeight& w, std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * w.row_step + column * w.column_step, each = 8 / w.bits;
    const auto byte =
        std::to_integer<std::uint8_t>(w.integers->known->data[static_cast<std::size_t>(at / each)]);
    if (w.is_signed) return static_cast<std::int8_t>(byte);
    return byte >> (at % each * w.bits) & ((1 << w.bits) - 1);
}

std::size_t block_at(const IntegerWeight& w, std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * w.blocks() + column / w.block);
}

/// The integers that the type has.
std::pair<int, int> range_of(const IntegerWeight& w) {
    const int bits = std::min(w.bits, stored_bits(w.integers->spec.dtype));
    return w.is_signed ? std::pair(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
                       : std::pair(0, (1 << bits) - 1);
}

/// The least and the largest difference between an integer and its zero point.
std::pair<float, float> differences(const IntegerWeight& w) {
    const auto [least_zero, most_zero] = std::minmax_element(w.zeros.begin(), w.zeros.end());
    const auto [low, high] = range_of(w);
    std::pair<float, float> range(static_cast<float>(low) - *most_zero,
                                  static_cast<float>(high) - *least_zero);
    if (range.first >= -128 && range.second <= 127) return range;
    range = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
    for (std::int64_t row = 0; row < w.rows; ++row)
        for (std::int64_t column = 0; column < w.columns; ++column) {
            const auto integer = static_cast<float>(integer_at(w, row, column));
            const float difference = integer - w.zeros[block_at(w, row, column)];
            range.first = std::min(range.first, difference);
            range.second = std::max(range.second, difference);
        }
    return range;
}

/// Why no block can have the scales, or "".
std::string refused_scales(const IntegerWeight& w) {
    if (w.columns % block_size != 0)
        return cat("a row has ", w.columns, " weights, which is no multiple of ", block_size);
    for (const float scale : w.scales)
        if (!is_half(scale)) return cat("a scale of ", scale, " is no number of 16 bits");
    if (w.block % block_size == 0) return "";
    for (std::int64_t row = 0; row < w.rows; ++row)
        for (std::int64_t column = 0; column < w.columns; column += block_size)
            for (std::int64_t i = 1; i < block_size; ++i) {
                const std::size_t first = block_at(w, row, column),
                                  other = block_at(w, row, column + i);
                if (w.scales[first] != w.scales[other] || w.zeros[first] != w.zeros[other])
                    return cat("scales of ", w.block, " weights are too many for blocks of ",
                               block_size);
            }
    return "";
}

/// The smallest type that holds the weight exactly, or why there is none.
struct Choice {
    std::string_view option;
    std::string reason;
};
Choice choose_type(const IntegerWeight& w) {
    if (std::string reason = refused_scales(w); !reason.empty()) return {"", std::move(reason)};
    const auto [low, high] = range_of(w);
    bool whole = true, has_offsets = high - low < 16;
    for (std::size_t i = 0; i < w.zeros.size(); ++i) {
        whole = whole && w.zeros[i] == std::trunc(w.zeros[i]);
        // The difference and the product of halves are exact in float.
        has_offsets = has_offsets &&
                      is_half(w.scales[i] * (static_cast<float>(low) - w.zeros[i])) &&
                      is_half(w.zeros[i]);
    }
    const auto [least, most] = differences(w);
    if (whole && least >= -8 && most <= 7) return {"q4_0", ""};
    if (has_offsets) return {"q4_1", ""};
    if (whole && least >= -16 && most <= 15) return {"q5_0", ""};
    if (whole && least >= -128 && most <= 127) return {"q8_0", ""};
    return {"", whole ? cat("integers and zero points differ by ", least, " to ", most)
                      : std::string("zero points are no integers")};
}

void put_half(std::byte* to, float value) {
    const std::uint16_t bits = float_to_half(value);
    std::memcpy(to, &bits, sizeof bits);
}

/// 32 weights from `column` on. base/blocks.cpp has pictures of the types.
void store_block(const IntegerWeight& w, std::int64_t row, std::int64_t column,
                 std::string_view type, std::byte* block) {
    const std::size_t at = block_at(w, row, column);
    const float scale = w.scales[at], zero = w.zeros[at];
    const bool has_offset = type == "q4_1", has_fifth = type == "q5_0", is_wide = type == "q8_0";
    const int least = range_of(w).first;
    const int added = has_offset ? -least
                                 : (has_fifth ? 16
                                    : is_wide ? 0
                                              : 8) -
                                       static_cast<int>(zero);
    put_half(block, scale);
    block += 2;
    if (has_offset) {
        put_half(block, scale * (static_cast<float>(least) - zero));
        block += 2;
    }
    std::uint32_t fifth = 0;
    std::byte* const nibbles = has_fifth ? block + 4 : block;
    for (int i = 0; i < block_size; ++i) {
        const int q = integer_at(w, row, column + i) + added;
        if (is_wide) {
            block[i] = static_cast<std::byte>(q & 0xff);
            continue;
        }
        fifth |= static_cast<std::uint32_t>(q >> 4) << i;
        nibbles[i % 16] |= static_cast<std::byte>((q & 15) << (i < 16 ? 0 : 4));
    }
    if (has_fifth) std::memcpy(block, &fifth, sizeof fifth);
}

std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// Known numbers, [rows, columns] or its transpose, as [rows, columns].
std::vector<float> as_rows(const HostTensor& from, bool transposed) {
    std::vector<float> values(static_cast<std::size_t>(from.shape.numel()));
    convert(from.data.data(), from.dtype, values.data(), DType::f32, values.size());
    if (!transposed) return values;
    const auto rows = static_cast<std::size_t>(from.shape[1]), columns = values.size() / rows;
    std::vector<float> turned(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        turned[i % rows * columns + i / rows] = values[i];
    return turned;
}

}  // namespace

Ref inner_product(Builder& build, Ref x, const ProductWeight& weight, Ref bias) {
    std::vector<Ref> params{weight.values};
    if (bias) params.push_back(bias);
    Attrs options{{"inputs", weight.columns}, {"outputs", weight.rows}, {"bias", bias != nullptr}};
    if (!weight.blocks.empty()) options.set("blocks", weight.blocks);
    return build.add1("InnerProduct", {x}, options, params);
}

std::optional<ProductWeight> in_blocks(Call& call, const IntegerWeight& w) {
    const Choice choice = choose_type(w);
    if (choice.option.empty()) {
        log(LogLevel::warning,
            cat("node '", call.node().name, "' (", call.node().type,
                "): its weights are unpacked to floats, because ", choice.reason));
        return std::nullopt;
    }
    const GgufType& type = block_type(choice.option);
    const Shape shape = block_shape(type, w.rows, w.columns);
    const auto fill = [&](HostTensor& made) {
        std::byte* block = made.data.data();
        for (std::int64_t row = 0; row < w.rows; ++row)
            for (std::int64_t column = 0; column < w.columns;
                 column += block_size, block += type.bytes)
                store_block(w, row, column, choice.option, block);
    };
    const std::string kind = cat(choice.option, " ", shape.str(), " ", w.block, " ", w.column_step,
                                 " ", hash_hex(bytes_of(w.scales) + bytes_of(w.zeros)));
    return ProductWeight{call.build.copy(w.integers, kind, shape, DType::u8, fill), w.rows,
                         w.columns, std::string(choice.option)};
}

std::optional<ProductWeight> in_blocks(Call& call, Ref matrix, int columns) {
    const Builder::Dequantized* const from = call.build.note_of(matrix);
    if (!from || (from->axis == columns) == from->is_transposed) return std::nullopt;
    const Shape& stored = from->integers->spec.shape;
    const bool by_rows = from->axis == 1;
    IntegerWeight w;
    w.rows = stored[1 - from->axis];
    w.columns = stored[from->axis];
    w.block = from->block;
    w.integers = from->integers;
    const DType dtype = from->integers->spec.dtype;
    w.is_signed = dtype == DType::i8 || dtype == DType::i4 || dtype == DType::i2;
    w.row_step = by_rows ? w.columns : 1;
    w.column_step = by_rows ? 1 : w.rows;
    w.scales = as_rows(*from->scale->known, !by_rows);
    w.zeros =
        from->zero ? as_rows(*from->zero->known, !by_rows) : std::vector<float>(w.scales.size(), 0);
    return in_blocks(call, w);
}

}  // namespace dlprim::onnx
