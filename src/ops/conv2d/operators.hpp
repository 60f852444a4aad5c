// SPDX-License-Identifier: MIT
// Operators of the folder: Convolution and TransposedConvolution, of images of one to three
// dimensions, and the gradients of the former.
//
//   Convolution                 x, weight[, bias]  -> y
//   Convolution2DBackwardData   dy, weight         -> dx, of shape attr input_shape
//   Convolution2DBackwardFilter x, dy              -> dweight, of shape attr weight_shape
//
// The gradients have the groups, kernel, stride, pad and dilate of the convolution. Engines compute
// these three of images of two dimensions, as which expand() writes all others: sequences are
// images of one row, and of volumes the depth's taps become channels.
//
//   x [N, C, D, H, W] -> DepthTaps [N, D', C, K, H, W] -> Convolution on [N * D', C * K, H, W]
//
// DepthTaps and DepthTapsBackward, which is its gradient, have engines of their own (volume/).
// TransposedConvolution becomes Convolution2DBackwardData.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::conv2d {

std::unique_ptr<Operator> make_convolution(bool transposed);
std::unique_ptr<Operator> make_backward_data();
std::unique_ptr<Operator> make_backward_filter();
std::unique_ptr<Operator> make_depth_taps(bool backward);

/// The tensors of a convolution. Each of the three operators makes one of them from the other two,
/// in this order, and is linear in both: its gradients are the other two operators.
enum class Part : std::size_t { input, weight, output };

/// Adds the gradients of the two inputs of the operator that makes `made`.
void linear_gradients(GradientContext& context, Part made);

}  // namespace dlprim::conv2d
