// SPDX-License-Identifier: MIT
// Direct loops for convolutions whose groups have one input channel (depthwise, with or without a
// channel multiplier). Each plane is computed separately, and threads share the planes.
#pragma once

#include "engine/epilogue.hpp"
#include "ops/conv2d/options.hpp"
#include "runtime/host_pool.hpp"

namespace dlprim::conv2d {

void depthwise_forward(HostPool& pool, const Geometry& g, const float* x, const float* weight,
                       const float* bias, const HostEpilogue& epilogue, float* y);
void depthwise_backward_data(HostPool& pool, const Geometry& g, const float* dy,
                             const float* weight, const HostEpilogue& epilogue, float* dx);
void depthwise_backward_filter(HostPool& pool, const Geometry& g, const float* x, const float* dy,
                               float* dweight);

}  // namespace dlprim::conv2d
