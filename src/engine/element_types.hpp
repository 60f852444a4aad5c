// SPDX-License-Identifier: MIT
// Reference engines that are written once for several types of elements: what they accept, and the
// compiler options of kernels/common/element.clh.
#pragma once

#include "engine/engine.hpp"

#include <string>

namespace dlprim {

/// Yes if the first `inputs` and `outputs` of the operands are of one float type: f32, f16, bf16,
/// or f64 where the device has double precision.
Verdict one_float_type(const Traits& device, const Problem& problem, std::size_t inputs,
                       std::size_t outputs);

/// Yes unless `dtype` is double and the device has no double precision.
Verdict has_double(const Traits& device, DType dtype);

/// Options of a kernel that includes common/element.clh and whose operands are all of `dtype`.
std::string element_options(DType dtype);

}  // namespace dlprim
