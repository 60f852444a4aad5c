// SPDX-License-Identifier: MIT
// There are no nested tensors on "ocl". nn.TransformerEncoder makes one of a padding mask in
// inference if the mask leaves the first positions of each row; where it does not, the module
// computes with the mask, as in training.
#include "common.hpp"

namespace dlprim_torch {
namespace {

bool is_left_aligned(const at::Tensor&, const at::Tensor&) {
    return false;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_nested_tensor_from_mask_left_aligned", is_left_aligned);
}

}  // namespace
}  // namespace dlprim_torch
