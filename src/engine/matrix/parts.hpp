// SPDX-License-Identifier: MIT
// The end of products with K in several parts (split-K): a launch that adds the parts in order.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>

namespace dlprim {

/// Where the parts are, and what is added to their sum.
struct PartsSum {
    std::int64_t splits;
    int bias = -1;               ///< the operand, a float per channel; -1: none
    std::uint64_t parts_at = 0;  ///< their offset in the workspace, in bytes
    /// For plain outputs: only this pixel and those after it are written, counted over all images.
    std::int64_t first_pixel = 0;
};
/// Adds the call that computes the problem's plain output [image][channel][h][w] from the parts in
/// the workspace, with bias and epilogue (kernels/matrix/parts_sum.cl).
void add_parts_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   const PartsSum& sum);
constexpr const char* parts_sum_source = "matrix/parts_sum.cl";

}  // namespace dlprim
