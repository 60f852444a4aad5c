// SPDX-License-Identifier: MIT
// Automatic mixed precision: which operators torch.autocast("ocl") casts, by the lists that CUDA
// uses.
#include "common.hpp"

#include <ATen/autocast_mode.h>

namespace dlprim_torch {
namespace {

using namespace at;  // The lists name its types, which are not the same in all versions.

at::Tensor refused(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                   std::int64_t) {
    TORCH_CHECK(
        false,
        "binary_cross_entropy and BCELoss are unsafe under autocast, since a half may become "
        "exactly 0 or 1. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT_OR_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    AT_FORALL_FP32(FLOAT)
    AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT_OR_DTYPE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(WIDEST)
#undef LOWER
#undef FLOAT
#undef FLOAT_OR_DTYPE
#undef WIDEST
    m.impl("binary_cross_entropy", refused);
}

}  // namespace
}  // namespace dlprim_torch
