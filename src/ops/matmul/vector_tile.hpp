// SPDX-License-Identifier: MIT
// The register tile of matrix products on CPUs: `rows` rows of vector_tile_vectors vectors, which
// matmul.vector and matmul.cache_blocked share.
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

/// The tile height for m rows that wastes the fewest of them. Each step also costs its loads of B.
inline std::int64_t vector_tile_rows(const Traits& device, std::int64_t m) {
    constexpr std::int64_t vectors = vector_tile_vectors;
    const std::int64_t most =
        std::clamp<std::int64_t>((device.vector_registers - vectors - 1) / vectors, 2, 12);
    std::int64_t best = 1;
    double best_cost = 1e300;
    for (const std::int64_t rows : {12, 11, 10, 9, 8, 6, 4, 3, 2, 1}) {
        if (rows > most) continue;
        const double cost = static_cast<double>(ceil_div(std::max<std::int64_t>(m, 1), rows)) *
                            (static_cast<double>(rows) * vectors + 3.0);
        if (cost < best_cost) best = rows, best_cost = cost;
    }
    return best;
}

}  // namespace dlprim::matmul
