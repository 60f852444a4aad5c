// SPDX-License-Identifier: MIT
// The register tile of matrix products on CPUs: rows of vector_tile_vectors vectors, which
// matmul.vector and matmul.cache_blocked share. A program has one height of whole tiles, which
// follows from the device alone, and chooses the heights of the last tiles when it runs
// (kernels/matmul/vector_tile.clh).
#pragma once

#include "base/integers.hpp"
#include "engine/engine.hpp"

#include <algorithm>
#include <cstdint>

namespace dlprim::matmul {

constexpr std::int64_t vector_tile_vectors = 2;

/// The lanes of a vector, W.
inline std::int64_t vector_tile_lanes(const Traits& device) {
    return device.vector_width >= 16 ? 16 : device.vector_width >= 8 ? 8 : 4;
}

/// The rows of a whole tile, MR: as many as have their sums in registers beside a step's vectors.
inline std::int64_t vector_tile_rows(const Traits& device) {
    constexpr std::int64_t vectors = vector_tile_vectors;
    return std::clamp<std::int64_t>((device.vector_registers - vectors - 1) / vectors, 2, 12);
}

/// The heights of tiles of at most `rows` rows: whole ones, a third, and single rows.
/// tile_height() of the kernels is the same rule.
inline std::int64_t tile_height(std::int64_t rows, std::int64_t rest) {
    const std::int64_t third = rows > 2 ? rows / 3 : 1;
    if (rest >= rows || rest > 2 * third + 1) return rows;
    return rest > 1 ? third : 1;
}

/// How many rows are computed for m rows in tiles of at most `rows` rows.
inline std::int64_t rows_computed(std::int64_t rows, std::int64_t m) {
    std::int64_t computed = m / rows * rows;
    while (computed < m) computed += tile_height(rows, m - computed);
    return computed;
}

}  // namespace dlprim::matmul
