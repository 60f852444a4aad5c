// SPDX-License-Identifier: MIT
// Which problems convolution engines on matrix units take.
//
// They compute in float, or in tf32, by products of halves on one of NVIDIA's matrix units
// (kernels/matrix/halves.clh, kernels/matrix/unit.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/split_tile.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// No, with the reason, unless the device has the unit, for `types` (unit_verdict), and the problem
/// one group, sizes that 32 bits count and a kernel within 15 x 15.
Verdict split_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                      std::initializer_list<DType> types = {DType::f16});

}  // namespace dlprim::conv2d
