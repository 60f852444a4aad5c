// SPDX-License-Identifier: MIT
// Flip: reverses the order of the elements along dimensions (torch.flip). It is one copy with
// negative strides, and its own gradient.
#pragma once

#include "engine/copy_engines.hpp"
#include "graph/operator.hpp"

namespace dlprim::flip {

std::vector<StridedCopy> copies(const Problem& problem);
constexpr Movement<StridedCopy> movement{"Flip", "flip.copy", "flip.host", copies};

}  // namespace dlprim::flip
