// SPDX-License-Identifier: MIT
// kernel_type: a table.
#include "engine/kernel_type.hpp"

namespace dlprim {

const char* kernel_type(DType dtype) noexcept {
    switch (dtype) {
        case DType::f32:
            return "float";
        case DType::f16:
            return "half";
        case DType::f64:
            return "double";
        case DType::i8:
            return "char";
        case DType::i16:
            return "short";
        case DType::bf16:
        case DType::u16:
            return "ushort";
        case DType::i32:
            return "int";
        case DType::u32:
            return "uint";
        case DType::i64:
            return "long";
        case DType::u64:
            return "ulong";
        default:  // bool, uint8 and narrow types
            return "uchar";
    }
}

}  // namespace dlprim
