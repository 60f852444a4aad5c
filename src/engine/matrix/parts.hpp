// SPDX-License-Identifier: MIT
// The end of products whose K was made in several parts: a launch that adds them in order.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>

namespace dlprim {

/// Where the parts are, and what they make.
struct PartsSum {
    std::int64_t splits;
    int bias = -1;                 ///< the operand, a float a channel; -1: none
    std::uint64_t parts_at = 0;    ///< their place in the workspace, in bytes
    std::int64_t first_pixel = 0;  ///< of all images of a plain output: only it and those behind
};
/// Adds the call that makes a plain output [image][channel][h][w] of the problem's from parts in
/// the workspace, with bias and epilogue (kernels/matrix/parts_sum.cl).
void add_parts_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   const PartsSum& sum);
constexpr const char* parts_sum_source = "matrix/parts_sum.cl";

}  // namespace dlprim
