// SPDX-License-Identifier: MIT
// Weights in GGUF's blocks, for the oracles of the operators that have the option `blocks`.
#pragma once

#include "base/blocks.hpp"
#include "graph/operator.hpp"

#include <string_view>

namespace dlprim {

/// The weights, [rows, weights of a row], of bytes in blocks of a type. Others stay as they are.
inline HostArray unpacked_weights(std::string_view blocks, const HostArray& array) {
    if (blocks.empty()) return array;
    const GgufType& type = block_type(blocks);
    std::vector<std::byte> bytes;
    for (const double value : array.data)
        bytes.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(value)));
    const std::vector<float> weights = unpack_blocks(type, bytes);
    return {Shape{array.shape[0], block_weights(type, array.shape[1])},
            {weights.begin(), weights.end()},
            DType::f32};
}

}  // namespace dlprim
