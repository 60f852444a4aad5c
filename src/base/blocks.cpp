// SPDX-License-Identifier: MIT
// Unpacking of GGUF's blocks. Each function follows the order of products and sums of the `gguf`
// package, whose values are rounded to float after each of them. So this file is compiled without
// contracting them (src/CMakeLists.txt).
#include "base/blocks.hpp"

#include "base/text.hpp"

#include <dlprim/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace dlprim {

namespace {

static_assert(std::endian::native == std::endian::little);

std::uint8_t byte_at(const std::byte* block, int at) {
    return std::to_integer<std::uint8_t>(block[at]);
}

float half_at(const std::byte* block, std::size_t at) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, block + at, sizeof bits);
    return half_to_float(bits);
}

void unpack_f32(const std::byte* block, float* values) {
    std::memcpy(values, block, sizeof(float));
}

void unpack_f16(const std::byte* block, float* values) {
    values[0] = half_at(block, 0);
}

void unpack_bf16(const std::byte* block, float* values) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, block, sizeof bits);
    values[0] = std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// Blocks of 32 elements. Byte i of the low nibbles holds elements i and i + 16.
//
//   Q8_0  d | 32 signed bytes                          d q
//   Q4_0  d | 16 bytes of nibbles                      d (q - 8)
//   Q4_1  d | m | 16 bytes of nibbles                  d q + m
//   Q5_0  d | 32 fifth bits | 16 bytes of nibbles      d (q - 16)
//   Q5_1  d | m | 32 fifth bits | 16 bytes of nibbles  d q + m
constexpr int small_block = 32;

int nibble(const std::byte* nibbles, int element) {
    const std::uint8_t both = byte_at(nibbles, element % 16);
    return element < 16 ? both & 15 : both >> 4;
}

void unpack_q8_0(const std::byte* block, float* values) {
    const float d = half_at(block, 0);
    for (int i = 0; i < small_block; ++i)
        values[i] = static_cast<float>(static_cast<std::int8_t>(byte_at(block, 2 + i))) * d;
}

void unpack_q4_0(const std::byte* block, float* values) {
    const float d = half_at(block, 0);
    for (int i = 0; i < small_block; ++i)
        values[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

void unpack_q4_1(const std::byte* block, float* values) {
    const float d = half_at(block, 0), m = half_at(block, 2);
    for (int i = 0; i < small_block; ++i)
        values[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

/// Five bits of an element: a nibble, and one bit of the word `fifth`.
int five_bits(const std::byte* fifth, const std::byte* nibbles, int element) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, fifth, sizeof bits);
    return nibble(nibbles, element) | static_cast<int>((bits >> element & 1u) << 4);
}

void unpack_q5_0(const std::byte* block, float* values) {
    const float d = half_at(block, 0);
    for (int i = 0; i < small_block; ++i)
        values[i] = d * static_cast<float>(five_bits(block + 2, block + 6, i) - 16);
}

void unpack_q5_1(const std::byte* block, float* values) {
    const float d = half_at(block, 0), m = half_at(block, 2);
    for (int i = 0; i < small_block; ++i)
        values[i] = d * static_cast<float>(five_bits(block + 4, block + 8, i)) + m;
}

// Blocks of 256 elements.
//
//   Q4_K  d | dmin | 8 scales and 8 minima of 6 bits, 12 bytes | 128 bytes of nibbles
//   Q5_K  d | dmin | the same | 32 bytes of fifth bits | 128 bytes of nibbles
//         32 elements share a scale and a minimum: (d scale) q - dmin minimum. The 32 bytes of
//         nibbles of a pair of them have the first 32 elements in their low halves. Bit g of byte i
//         of the fifth bits is that of element 32 g + i.
//   Q6_K  128 bytes of nibbles | 64 bytes of two upper bits | 16 signed scales | d
//         16 elements share a scale: (d scale) (q - 32).
constexpr int large_block = 256;

struct ScaleAndMinimum {
    int scale, minimum;
};

/// Of the group of 32 elements. Groups 4 to 7 have their lower four bits in the last four bytes,
/// and the upper two of the scale and the minimum in those of groups 0 to 3.
ScaleAndMinimum scale_of_group(const std::byte* packed, int group) {
    const auto at = [&](int i) { return int{byte_at(packed, i)}; };
    if (group < 4) return {at(group) & 63, at(group + 4) & 63};
    return {(at(group + 4) & 15) | (at(group - 4) >> 2 & 48),
            (at(group + 4) >> 4) | (at(group) >> 2 & 48)};
}

/// Q4_K, and with `fifth` bits Q5_K.
void unpack_k(const std::byte* block, const std::byte* fifth, const std::byte* nibbles,
              float* values) {
    const float d = half_at(block, 0), dmin = half_at(block, 2);
    for (int group = 0; group < large_block / 32; ++group) {
        const ScaleAndMinimum of = scale_of_group(block + 4, group);
        const float scale = d * static_cast<float>(of.scale);
        const float minimum = dmin * static_cast<float>(of.minimum);
        for (int i = 0; i < 32; ++i) {
            int q = byte_at(nibbles, group / 2 * 32 + i) >> 4 * (group % 2) & 15;
            if (fifth) q |= (byte_at(fifth, i) >> group & 1) << 4;
            values[group * 32 + i] = scale * static_cast<float>(q) - minimum;
        }
    }
}

void unpack_q4_k(const std::byte* block, float* values) {
    unpack_k(block, nullptr, block + 16, values);
}

void unpack_q5_k(const std::byte* block, float* values) {
    unpack_k(block, block + 16, block + 48, values);
}

void unpack_q6_k(const std::byte* block, float* values) {
    const std::byte *low = block, *high = block + 128, *scales = block + 192;
    const float d = half_at(block, 208);
    for (int i = 0; i < large_block; ++i) {
        // Two halves of 128 elements; of each, 64 bytes of nibbles and 32 of upper bits.
        const int half = i / 128, quarter = i % 128 / 32;
        const int nibble_at = half * 64 + i % 64, high_at = half * 32 + i % 32;
        const int q = (byte_at(low, nibble_at) >> 4 * (quarter / 2) & 15) |
                      (byte_at(high, high_at) >> 2 * quarter & 3) << 4;
        const auto scale = static_cast<std::int8_t>(byte_at(scales, i / 16));
        values[i] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
    }
}

constexpr GgufType types[] = {
    {0, "F32", "f32", 1, 4, unpack_f32},
    {1, "F16", "f16", 1, 2, unpack_f16, 0, 1},
    {30, "BF16", "bf16", 1, 2, unpack_bf16},
    {8, "Q8_0", "q8_0", small_block, 34, unpack_q8_0, 0, 1},
    {2, "Q4_0", "q4_0", small_block, 18, unpack_q4_0, 0, 1},
    {3, "Q4_1", "q4_1", small_block, 20, unpack_q4_1, 0, 2},
    {6, "Q5_0", "q5_0", small_block, 22, unpack_q5_0, 0, 1},
    {7, "Q5_1", "q5_1", small_block, 24, unpack_q5_1, 0, 2},
    {12, "Q4_K", "q4_k", large_block, 144, unpack_q4_k, 0, 2},
    {13, "Q5_K", "q5_k", large_block, 176, unpack_q5_k, 0, 2},
    {14, "Q6_K", "q6_k", large_block, 210, unpack_q6_k, 208, 1},
};

/// Types that are known and not unpacked, for messages.
constexpr struct {
    std::uint32_t code;
    std::string_view name;
} others[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},
};

}  // namespace

std::span<const GgufType> gguf_types() {
    return types;
}

const GgufType* find_gguf_type(std::uint32_t code) {
    const auto found = std::find_if(std::begin(types), std::end(types),
                                    [&](const GgufType& type) { return type.code == code; });
    return found == std::end(types) ? nullptr : found;
}

const GgufType& block_type(std::string_view option) {
    std::vector<std::string> known;
    for (const GgufType& type : types) {
        if (type.bytes == sizeof(float)) continue;
        if (type.option == option) return type;
        known.emplace_back(type.option);
    }
    fail(ErrorKind::invalid_argument, "blocks '", option, "' is not one of ", join(known, ", "),
         did_you_mean(std::string(option), known));
}

BlockSize block_size(const GgufType& type) {
    const std::int64_t weights = std::max<std::int64_t>(type.elements, small_block);
    return {weights, weights / type.elements * static_cast<std::int64_t>(type.bytes)};
}

Shape block_shape(const GgufType& type, std::int64_t rows, std::int64_t weights) {
    const BlockSize size = block_size(type);
    require(weights % size.weights == 0, "rows of ", weights,
            " weights are no whole number of blocks of ", type.option, ", of ", size.weights,
            " weights each");
    return Shape{rows, weights / size.weights * size.bytes};
}

std::int64_t block_weights(const GgufType& type, std::int64_t row_bytes) {
    const BlockSize size = block_size(type);
    require(row_bytes % size.bytes == 0, "rows of ", row_bytes,
            " bytes are no whole number of blocks of ", type.option, ", of ", size.bytes,
            " bytes each");
    return row_bytes / size.bytes * size.weights;
}

std::vector<float> unpack_blocks(const GgufType& type, std::span<const std::byte> blocks) {
    const std::size_t count = blocks.size() / type.bytes;
    std::vector<float> weights(count * static_cast<std::size_t>(type.elements));
    for (std::size_t i = 0; i < count; ++i)
        type.unpack(blocks.data() + i * type.bytes,
                    weights.data() + i * static_cast<std::size_t>(type.elements));
    return weights;
}

std::string gguf_type_name(std::uint32_t code) {
    if (const GgufType* type = find_gguf_type(code)) return std::string(type->name);
    const auto found = std::find_if(std::begin(others), std::end(others),
                                    [&](const auto& other) { return other.code == code; });
    return found == std::end(others) ? cat(code) : std::string(found->name);
}

}  // namespace dlprim
