// SPDX-License-Identifier: MIT
// What the OpenCL engines of interpolation share: the tables of both axes on the device and the
// launch that brings them along.
#pragma once

#include "ops/interpolation/options.hpp"

#include <memory>

namespace dlprim::interpolation {

/// A launch of `kernel` (whose first tensor is `source`, second `target`) over the pixels of
/// `work`. x and y are the forward direction's operands, or their gradients.
std::unique_ptr<Launch> build(ContextImpl& context, const Attrs& attrs, const Operand& x,
                              const Operand& y, const char* kernel, const char* source,
                              const char* target, const Shape& work);

/// Seconds by bytes moved.
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::interpolation
