// SPDX-License-Identifier: MIT
// ConvolutionND and TransposedConvolutionND, which become convolutions of images of two dimensions:
// the depth's taps become channels.
//
//   x [N, C, D, H, W] -> DepthTaps [N, D', C, K, H, W] -> Convolution2D on [N * D', C * K, H, W]
//
// DepthTaps and DepthTapsBackward, which is its gradient, have engines of their own.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::conv_nd {

std::unique_ptr<Operator> make_convolution(bool transposed);
std::unique_ptr<Operator> make_depth_taps(bool backward);

void add_depth_taps_host_engines(EngineRegistry& engines);       ///< depth_taps_host.cpp
void add_depth_taps_reference_engines(EngineRegistry& engines);  ///< depth_taps_reference.cpp

}  // namespace dlprim::conv_nd
