// SPDX-License-Identifier: MIT
// Reorder: the places of an image tensor's elements in each layout except packed ones.
#pragma once

#include "engine/engine.hpp"

#include <algorithm>

namespace dlprim::reorder {

inline constexpr const char* type = "Reorder";

/// Channel c of pixel p of image n is element n*image + (c / block)*block_step + (c %
/// block)*lane_step + p*pixel_step. `channels` includes lanes beyond the logical channels.
struct Side {
    std::int64_t channels, block, image, block_step, lane_step, pixel_step;
};

inline Side side_of(const Operand& operand) {
    const std::int64_t c = operand.shape[1], pixels = operand.shape[2] * operand.shape[3];
    const std::int64_t whole = std::max<std::int64_t>(c, 1);
    if (operand.layout.kind == Layout::Kind::channels_last) return {c, whole, c * pixels, 0, 1, c};
    if (operand.layout.kind != Layout::Kind::blocked) return {c, whole, c * pixels, 0, pixels, 1};
    const std::int64_t b = operand.layout.block, blocks = (c + b - 1) / b;
    return {blocks * b, b, blocks * b * pixels, b * pixels, 1, b};
}

/// The number of channels that have equal steps on both sides, which are moved together.
inline std::int64_t common_block(const Problem& problem) {
    std::int64_t block = 16;
    for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]})
        if (operand->layout.kind == Layout::Kind::blocked)
            block = std::min<std::int64_t>(block, operand->layout.block);
    return block;
}

/// No, with the reason, for packed layouts, for ranks other than 4, and for blocks that are no
/// power of two.
Verdict applicable(const Problem& problem);

}  // namespace dlprim::reorder
