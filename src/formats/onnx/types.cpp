// SPDX-License-Identifier: MIT
// The table of ONNX's element types.
#include "formats/onnx/types.hpp"

#include "base/text.hpp"

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
                             {13, "uint64", std::nullopt},
                             {14, "complex64", std::nullopt},
                             {15, "complex128", std::nullopt},
                             {16, "bfloat16", DType::bf16},
                             {17, "float8e4m3fn", std::nullopt},
                             {18, "float8e4m3fnuz", std::nullopt},
                             {19, "float8e5m2", std::nullopt},
                             {20, "float8e5m2fnuz", std::nullopt},
                             {21, "uint4", std::nullopt},
                             {22, "int4", std::nullopt},
                             {23, "float4e2m1", std::nullopt},
                             {24, "float8e8m0", std::nullopt},
                             {25, "uint2", std::nullopt},
                             {26, "int2", std::nullopt}};

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

}  // namespace dlprim::onnx
