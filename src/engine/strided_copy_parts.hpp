// SPDX-License-Identifier: MIT
// What strided copies on OpenCL and on the host share: numbers of elements, and transpositions.
#pragma once

#include "engine/strided_copy.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace dlprim {

inline std::size_t to_size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

/// Elements that a work-item on a CPU, or a task on the host, copies at least.
constexpr std::int64_t copy_piece = 8192;

/// The product of the first `count` sizes.
std::int64_t product_of(const Ints& sizes, std::size_t count);

/// A dimension that may consist of two which follow each other in one array.
struct Line {
    std::int64_t inner = 1;         ///< elements of the inner one
    std::int64_t outer_stride = 0;  ///< of the outer one, in the other array
};

/// A copy whose last dimension but one is contiguous in x and whose last is contiguous in y.
struct Transposition {
    StridedCopy copy;
    Line x_line, y_line;  ///< of the last dimension but one, and of the last
};

/// Returns nothing if the copy is not a transposition, or one too small for tiles. `fold` makes one
/// line of two dimensions where the inner one is shorter than a tile.
std::optional<Transposition> transposition(const StridedCopy& copy, bool fold);

}  // namespace dlprim
