// SPDX-License-Identifier: MIT
// The table of ONNX's element types.
#include "formats/onnx/types.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

struct TypeRow {
    int number;
    const char* name;
    std::optional<DType> dtype;
};

// TensorProto.DataType, whose newest entries an old schema lacks.
const TypeRow type_rows[] = {{1, "float", DType::f32},
                             {2, "uint8", DType::u8},
                             {3, "int8", DType::i8},
                             {4, "uint16", DType::u16},
                             {5, "int16", DType::i16},
                             {6, "int32", DType::i32},
                             {7, "int64", DType::i64},
                             {8, "string", std::nullopt},
                             {9, "bool", DType::boolean},
                             {10, "float16", DType::f16},
                             {11, "double", DType::f64},
                             {12, "uint32", DType::u32},
                             {13, "uint64", DType::u64},
                             {14, "complex64", std::nullopt},
                             {15, "complex128", std::nullopt},
                             {16, "bfloat16", DType::bf16},
                             {17, "float8e4m3fn", DType::f8e4m3fn},
                             {18, "float8e4m3fnuz", DType::f8e4m3fnuz},
                             {19, "float8e5m2", DType::f8e5m2},
                             {20, "float8e5m2fnuz", DType::f8e5m2fnuz},
                             {21, "uint4", DType::u4},
                             {22, "int4", DType::i4},
                             {23, "float4e2m1", DType::f4e2m1},
                             {24, "float8e8m0", DType::f8e8m0},
                             {25, "uint2", DType::u2},
                             {26, "int2", DType::i2}};

const TypeRow* find_type(std::int64_t number) {
    for (const TypeRow& row : type_rows)
        if (row.number == number) return &row;
    return nullptr;
}

}  // namespace

std::optional<DType> dtype_of(std::int64_t onnx_type) {
    const TypeRow* const row = find_type(onnx_type);
    return row ? row->dtype : std::nullopt;
}

std::string type_name(std::int64_t onnx_type) {
    const TypeRow* const row = find_type(onnx_type);
    return row ? row->name : cat("number ", onnx_type);
}

int stored_bits(DType dtype) {
    switch (dtype) {
        case DType::f4e2m1:
        case DType::i4:
        case DType::u4:
            return 4;
        case DType::i2:
        case DType::u2:
            return 2;
        default:
            return 8 * static_cast<int>(size_of(dtype));
    }
}

std::size_t stored_bytes(std::int64_t elements, DType dtype) {
    const std::size_t in_byte = 8 / static_cast<std::size_t>(std::min(stored_bits(dtype), 8));
    const auto count = static_cast<std::size_t>(elements);
    return in_byte == 1 ? count * size_of(dtype) : (count + in_byte - 1) / in_byte;
}

std::vector<std::byte> unpacked(const std::vector<std::byte>& packed, std::int64_t elements,
                                DType dtype) {
    const int bits = stored_bits(dtype), in_byte = 8 / bits;
    const bool has_sign = dtype == DType::i4 || dtype == DType::i2;
    std::vector<std::byte> result(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < result.size(); ++i) {
        const auto at = i / static_cast<std::size_t>(in_byte);
        const int shift = bits * static_cast<int>(i % static_cast<std::size_t>(in_byte));
        int value = (std::to_integer<int>(packed[at]) >> shift) & ((1 << bits) - 1);
        if (has_sign && (value >> (bits - 1)) != 0) value |= 0xff << bits;
        result[i] = static_cast<std::byte>(value & 0xff);
    }
    return result;
}

}  // namespace dlprim::onnx
