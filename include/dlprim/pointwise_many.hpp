// SPDX-License-Identifier: MIT
// One generated kernel over lists of tensors, as the update of an optimizer needs it:
//
//   // Adam for all parameters of a network, in a launch or two
//   dp::ops::pointwise_many("y1 = p0*x1 + (1-p0)*x3; y2 = ...; y0 = x0 - p2*y1/(sqrt(y2)+p3)",
//                           {weights, first, second, gradients}, {0.9, 0.999, 1e-3, 1e-8},
//                           {weights, first, second});
//
// Waiting, ownership, threads: as those of other eager calls (dlprim/ops.hpp).
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/tensor.hpp>

#include <string_view>
#include <vector>

namespace dlprim::ops {

/// Runs a program of docs/pointwise.md once for each position k of the lists, with inputs[0][k],
/// inputs[1][k], ... as x0, x1, ..., and `scalars` as p0, p1, .... Returns the lists of y0, y1,
/// .... The results have the same bits as those of a pointwise() call for each k, in that order.
///
/// Tensors are seen as flat. Those of one k have the same number of elements, or one element, which
/// serves all others; tensors of different k may differ. A list of one tensor serves every k.
/// `outs`, which may be empty, has a list for each result, to which it is written; such a list may
/// be one of the inputs.
///
/// On OpenCL devices elementwise programs take one launch for all tensors whose kernels have one
/// text (those of one type), and another one for each 64 cl_mems beyond the first; the pool puts
/// hundreds of small tensors into one. Scalars are arguments of the launch. Other programs, tensors
/// of which one is written and read by another k, and the host run as a call for each k.
///
/// Throws Error(invalid_argument) for lists that do not fit each other, strided views, and as
/// pointwise() does.
std::vector<std::vector<Tensor>> pointwise_many(std::string_view code,
                                                const std::vector<std::vector<Tensor>>& inputs,
                                                const std::vector<double>& scalars = {},
                                                const std::vector<std::vector<Tensor>>& outs = {});

}  // namespace dlprim::ops
