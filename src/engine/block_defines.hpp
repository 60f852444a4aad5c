// SPDX-License-Identifier: MIT
// The defines of kernels/matrix/blocks.clh.
#pragma once

#include "base/blocks.hpp"
#include "engine/kernel_options.hpp"

#include <dlprim/context.hpp>

#include <string>

namespace dlprim {

/// Compiler options for weights in blocks of a type.
inline std::string block_options(const Traits& device, const GgufType& type) {
    const BlockSize size = block_size(type);
    return cat(define("BLOCK_TYPE", type.code), define("BLOCK_WEIGHTS", size.weights),
               define("BLOCK_BYTES", size.bytes), define("ANY_ALIGNMENT", device.wide_vectors));
}

}  // namespace dlprim
