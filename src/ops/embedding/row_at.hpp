// SPDX-License-Identifier: MIT
// The rows that indices in host memory name.
#pragma once

#include "base/number_types.hpp"
#include "base/text.hpp"
#include "engine/element.hpp"
#include "runtime/refusals.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dlprim::embedding {

/// The index at position `i` of an array of `dtype`. What int64 cannot hold becomes negative, which
/// is no valid row either.
inline std::int64_t index_at(const std::byte* data, DType dtype, std::int64_t i) {
    return with_number_type(
        dtype,
        [&]<typename T>(T) {
            const T value = PlainElement<T>::load(data, i);
            constexpr double most = 0x1p62;
            if constexpr (std::is_floating_point_v<T>)
                if (!(value >= -most && value <= most)) return std::int64_t{-1};
            return static_cast<std::int64_t>(value);
        },
        [] { return std::int64_t{-1}; });
}

/// The row that the index at position `i` names. Throws Error(invalid_argument) if there is none.
inline std::int64_t row_at(const std::byte* data, DType dtype, std::int64_t i, std::int64_t rows) {
    const std::int64_t row = index_at(data, dtype, i);
    if (row < 0 || row >= rows)
        fail(ErrorKind::invalid_argument, outside_text(row, i, rows, false));
    return row;
}

}  // namespace dlprim::embedding
