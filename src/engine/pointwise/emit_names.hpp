// SPDX-License-Identifier: MIT
// Names of types in the text of generated kernels.
#pragma once

#include "base/text.hpp"

#include <dlprim/dtype.hpp>

#include <string>

namespace dlprim::pointwise {

/// The name of OpenCL C's vector type of this width.
inline std::string wide(const std::string& type, int width) {
    return width == 1 ? type : cat(type, width);
}

/// The suffix of functions that load or store a type.
inline const char* tag(DType dtype) {
    static const char* const tags[] = {"f32", "f16", "bf16", "f64", "i8",   "u8", "i16",
                                       "u16", "i32", "u32",  "i64", "bool", "u64"};
    return tags[static_cast<int>(dtype)];
}

}  // namespace dlprim::pointwise
