// SPDX-License-Identifier: MIT
// The two operators of torch.amp.GradScaler, which keep the scale and found_inf on the device.
#include "ops/call.hpp"

namespace dlprim_torch {
namespace {

/// Multiplies gradients by inv_scale, and sets found_inf to 1 where one is not finite.
void check_and_unscale(at::TensorList gradients, at::Tensor& found_inf,
                       const at::Tensor& inv_scale) {
    TORCH_CHECK(found_inf.numel() == 1 && inv_scale.numel() == 1,
                "found_inf and inv_scale hold one value each.");
    for (const at::Tensor& gradient : gradients) {
        if (gradient.numel() == 0) continue;
        const at::Tensor found =
            at::empty(std::vector<std::int64_t>(gradient.dim(), 1), found_inf.options());
        pointwise_into({gradient, found}, "y0 = x0 * x1; y1 = max[](isnan(x0) || isinf(x0))",
                       {gradient, inv_scale});
        const at::Tensor flat = found.view(found_inf.sizes());
        pointwise_into({found_inf}, "y0 = max(x0, x1)", {found_inf, flat});
    }
}

/// The next scale: less after an infinity, more after `interval` steps without one.
at::Tensor& update_scale(at::Tensor& scale, at::Tensor& tracker, const at::Tensor& found_inf,
                         double growth, double backoff, std::int64_t interval) {
    TORCH_CHECK(scale.numel() == 1 && tracker.numel() == 1 && found_inf.numel() == 1,
                "The scale, its growth_tracker and found_inf hold one value each.");
    pointwise_into({scale, tracker},
                   "n = x1 + 1; grows = n == p2; bad = x2 != 0; larger = x0 * p0; "
                   "y0 = bad ? x0 * p1 : (grows && !isinf(larger) ? larger : x0); "
                   "y1 = bad || grows ? 0 : n",
                   {scale, tracker, found_inf}, {growth, backoff, static_cast<double>(interval)});
    return scale;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_amp_foreach_non_finite_check_and_unscale_", check_and_unscale);
    m.impl("_amp_update_scale_", update_scale);
}

}  // namespace
}  // namespace dlprim_torch
