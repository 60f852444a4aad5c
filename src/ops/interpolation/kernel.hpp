// SPDX-License-Identifier: MIT
// What the OpenCL engines of interpolation share: the tables of both axes on the device, and a
// launch that owns them.
#pragma once

#include "ops/interpolation/options.hpp"

#include <memory>

namespace dlprim::interpolation {

/// A launch of `kernel` over the pixels of `work`. Its first tensor is called `source` and its
/// second `target`. x and y are the operands of the forward direction, or their gradients.
std::unique_ptr<Launch> build(ContextImpl& context, const Attrs& attrs, const Operand& x,
                              const Operand& y, const char* kernel, const char* source,
                              const char* target, const Shape& work);

/// Estimated seconds: bytes moved over the bandwidth.
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::interpolation
