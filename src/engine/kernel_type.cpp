// SPDX-License-Identifier: MIT
// kernel_type: a table.
#include "engine/kernel_type.hpp"

#include <cstddef>
#include <iterator>

namespace dlprim {

const char* kernel_type(DType dtype) noexcept {
    // By the number of a DType; bool, uint8 and narrow types are bytes.
    constexpr const char* names[] = {"float", "half",  "ushort", "double", "char",
                                     "uchar", "short", "ushort", "int",    "uint",
                                     "long",  "uchar", "ulong"};
    const auto number = static_cast<std::size_t>(dtype);
    return number < std::size(names) ? names[number] : "uchar";
}

}  // namespace dlprim
