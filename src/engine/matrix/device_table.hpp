// SPDX-License-Identifier: MIT
// Rates of matrix products, measured on an H200's tensor cores. The model (engine/matrix/model.hpp)
// scales them to other devices by the number of compute units, and to the other matrix unit by
// unit_pace().
#pragma once

#include <array>
#include <cstdint>

namespace dlprim::h200 {

constexpr double compute_units = 132;

/// The rate of one tile of a work-group. `tflops` is what the whole device reaches with it,
/// `resident` is the number of work-groups that share a compute unit, and `stages` is how many
/// stages at most are worth their local memory.
struct TileRate {
    std::int64_t rows, columns;
    double tflops;
    int resident;
    std::int64_t stages;
};

/// Both operands have 16 bits, and K is contiguous in both. Rows are pixels and columns are output
/// channels. The bandwidth of local memory limits these tiles: copies write it and the matrix units
/// read it. Larger tiles need fewer of both for the same product.
inline constexpr std::array<TileRate, 5> stored16_rates{{{128, 64, 300, 2, 6},
                                                         {128, 128, 430, 2, 6},
                                                         {128, 256, 500, 1, 4},
                                                         {256, 64, 330, 1, 4},
                                                         {256, 128, 470, 1, 4}}};

/// Both operands have 16 bits, in any transposition. The rates were measured with filter gradients,
/// where both operands are transposed, rows are output channels, and columns are pairs of input
/// channel and tap.
inline constexpr std::array<TileRate, 5> stored16_transposed_rates{{{64, 128, 270, 2, 6},
                                                                    {64, 256, 330, 1, 4},
                                                                    {128, 64, 270, 2, 6},
                                                                    {128, 128, 380, 2, 6},
                                                                    {128, 256, 430, 1, 4}}};

/// Seconds of one step (64 of K) for tiles of 64 or 128 rows and 128 columns, with three products
/// of halves. `split_steps` is for weights that are split beforehand. It assumes the full speed of
/// the matrix units. Measured steps take 1.6 to 2 times as long. The same holds for the models that
/// these compete with, so only the order counts. `split_both_steps` is for kernels that split both
/// operands while they multiply.
struct SplitSteps {
    double rows_64, rows_128;
};
inline constexpr SplitSteps split_steps{0.75e-6, 1.25e-6};
inline constexpr SplitSteps split_both_steps{1.6e-6, 2.2e-6};
/// For kernels that only copy and multiply halves that were split before.
inline constexpr SplitSteps planes_steps{0.41e-6, 0.65e-6};

/// Elements of patches that the whole device gathers from its caches per second.
constexpr double gathered_per_s = 1.5e12;

}  // namespace dlprim::h200
