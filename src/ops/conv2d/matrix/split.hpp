// SPDX-License-Identifier: MIT
// The problems that convolution engines on matrix units support.
//
// These engines compute in float or in tf32, by products of halves on one of NVIDIA's matrix units
// (kernels/matrix/halves.clh, kernels/matrix/unit.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/split_tile.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// Returns yes if the device has the unit for `types` (see unit_verdict), and the problem has a
/// single group, sizes that fit into 32-bit indices, and a kernel of at most 15 x 15; else no, with
/// the reason.
Verdict split_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                      std::initializer_list<DType> types = {DType::f16});

}  // namespace dlprim::conv2d
