// SPDX-License-Identifier: MIT
// One kernel over lists of tensors, as optimizers ask for it (dlprim/pointwise_many.hpp).
#pragma once

#include "common.hpp"

#include <string_view>
#include <vector>

namespace dlprim_torch {

using Lists = std::vector<at::TensorList>;

/// Whether run_many() takes these lists: floating-point tensors of one device and one type, those
/// of one position with the same sizes and strides, and without gaps. A list of one tensor of one
/// element serves all positions.
bool fits_many(const Lists& inputs);

/// Runs the program of docs/pointwise.md for each position of the lists in a launch or two. `outs`
/// has a list for each result, which may be one of `inputs`. Both fit (fits_many()).
void run_many(std::string_view code, const Lists& inputs, const std::vector<double>& scalars,
              const Lists& outs);

/// Tensors for results, like those of the list.
std::vector<at::Tensor> empty_like_all(at::TensorList list);

}  // namespace dlprim_torch
