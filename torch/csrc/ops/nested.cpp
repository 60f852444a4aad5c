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

/// PyTorch has a kernel of its own for this device, and warns of another one.
class Silence final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
};

[[maybe_unused]] const bool registered = [] {
    Silence silence;
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1,
                                  __FILE__, __LINE__);
    library.impl("_nested_tensor_from_mask_left_aligned", is_left_aligned);
    return true;
}();

}  // namespace
}  // namespace dlprim_torch
