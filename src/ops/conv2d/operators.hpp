// SPDX-License-Identifier: MIT
// Operators of the folder: Convolution2D and its gradients with respect to data and filter.
//
//   Convolution2D               x, weight[, bias]  -> y
//   Convolution2DBackwardData   dy, weight         -> dx, of shape attr input_shape
//   Convolution2DBackwardFilter x, dy              -> dweight, of shape attr weight_shape
//
// The gradients have the groups, kernel, stride, pad and dilate of the convolution.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::conv2d {

std::unique_ptr<Operator> make_forward();
std::unique_ptr<Operator> make_backward_data();
std::unique_ptr<Operator> make_backward_filter();

// Naive loops in double (oracle.cpp). `options` are those of the convolution.
struct Conv2dOptions;
void forward_oracle(const Conv2dOptions& options, const HostArray& x, const HostArray& weight,
                    const HostArray* bias, HostArray& y);
void backward_data_oracle(const Conv2dOptions& options, const HostArray& dy,
                          const HostArray& weight, HostArray& dx);
void backward_filter_oracle(const Conv2dOptions& options, const HostArray& x, const HostArray& dy,
                            HostArray& dweight);

}  // namespace dlprim::conv2d
