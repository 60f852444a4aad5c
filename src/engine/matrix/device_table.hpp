// SPDX-License-Identifier: MIT
// What was measured of products on an H200's tensor cores. The model (engine/matrix/model.hpp)
// scales it to other devices by their compute units, and to the other unit by unit_pace().
#pragma once

#include <array>
#include <cstdint>

namespace dlprim::h200 {

constexpr double compute_units = 132;

/// A work-group's tile: what the whole device reaches with it, in TFLOP/s, how many work-groups of
/// it share a compute unit, and how many stages are worth their local memory.
struct TileRate {
    std::int64_t rows, columns;
    double tflops;
    int resident;
    std::int64_t stages;
};

/// Operands of 16 bits, both with K along their lines: pixels by output channels. Local memory
/// bounds them: copies write it and the matrix units read it, and a larger tile does both less
/// often.
inline constexpr std::array<TileRate, 5> stored16_rates{{{128, 64, 300, 2, 6},
                                                         {128, 128, 430, 2, 6},
                                                         {128, 256, 500, 1, 4},
                                                         {256, 64, 330, 1, 4},
                                                         {256, 128, 470, 1, 4}}};

/// Operands of 16 bits in any transposition, measured with filter gradients, whose two operands are
/// both transposed: output channels by (input channel, tap).
inline constexpr std::array<TileRate, 5> stored16_transposed_rates{{{64, 128, 270, 2, 6},
                                                                    {64, 256, 330, 1, 4},
                                                                    {128, 64, 270, 2, 6},
                                                                    {128, 128, 380, 2, 6},
                                                                    {128, 256, 430, 1, 4}}};

/// Seconds of one step of 64 of K for a tile of 64 (128) rows and 128 columns, in three products of
/// halves. Weights at hand: at the full speed of the matrix units. Measured steps take 1.6 to 2
/// times as long, and so do those of the models that these compete with, so that only the order
/// counts. Both operands made: where both sides are split while multiplying.
struct SplitSteps {
    double rows_64, rows_128;
};
inline constexpr SplitSteps split_steps{0.75e-6, 1.25e-6};
inline constexpr SplitSteps split_both_steps{1.6e-6, 2.2e-6};

/// Elements of patches that the whole device gathers a second, from its caches.
constexpr double gathered_per_s = 1.5e12;

}  // namespace dlprim::h200
