// SPDX-License-Identifier: MIT
// Gradients of weights of few channels whose windows neither overlap nor leave gaps, as in the
// first layer of a vision transformer. The windows are copied to a blocked image, whose channels
// are the taps of the kernel (kernels/conv2d/blocked_patches.cl). What remains is the gradient of a
// 1x1 convolution with the same weights.
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"

#include <algorithm>

namespace dlprim::conv2d {

Verdict patches_verdict(const Traits& device, const Geometry& g) {
    if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
    if (g.in >= device.vector_width)
        return Verdict::no(cat("it needs fewer input channels than the ", device.vector_width,
                               " lanes of a vector, not ", g.in));
    if (g.in * g.kh * g.kw < device.vector_width)
        return Verdict::no(cat("its ", g.in * g.kh * g.kw, " taps do not fill a vector of ",
                               device.vector_width, " lanes"));
    const bool whole = g.kh == g.sh && g.kw == g.sw && g.pt == 0 && g.pl == 0 &&
                       (g.dh == 1 || g.kh == 1) && (g.dw == 1 || g.kw == 1) && g.oh * g.sh <= g.h &&
                       g.ow * g.sw <= g.w;
    if (!whole)
        return Verdict::no(
            "it supports kernels as large as their strides only, without padding and dilation");
    return Verdict::yes();
}

Geometry patches_geometry(Geometry g) {
    g.in *= g.kh * g.kw;
    g.h = g.oh;
    g.w = g.ow;
    g.kh = g.kw = g.sh = g.sw = g.dh = g.dw = 1;
    return g;
}

std::int64_t patches_bytes(const Traits& device, const Geometry& g) {
    const std::int64_t v = device.vector_width;
    return 4 * g.n * ceil_div(g.in * g.kh * g.kw, v) * v * g.oh * g.ow;
}

double patches_seconds(const Traits& device, const Problem& problem) {
    const Geometry g = Geometry::of(problem);
    const auto copied = 2.0 * static_cast<double>(patches_bytes(device, g));
    return roofline_seconds(device, problem, g.flops(), 0.6) +
           copied / (std::max(1.0, device.gbytes_per_s) * 1e9 * 0.7);
}

void add_patches(KernelLaunch& launch, ContextImpl& context, const Geometry& g, int to,
                 std::uint64_t at) {
    const Traits& device = context.traits();
    const std::int64_t rows = g.n * g.oh;
    const std::int64_t rows_per_item =
        std::max<std::int64_t>(1, rows / (8 * std::max(1, device.compute_units)));
    const auto program =
        conv_program(context, "blocked_patches.cl", define("V", device.vector_width));
    KernelCall call(program, "patches", single_items(ceil_div(rows, rows_per_item)));
    call.tensor("x", 0).tensor_at("y", to, at);
    call.sizes({{"rows", rows},
                {"rows_per_item", rows_per_item},
                {"channels", g.in},
                {"x_h", g.h},
                {"x_w", g.w},
                {"out_h", g.oh},
                {"out_w", g.ow},
                {"kernel_h", g.kh},
                {"kernel_w", g.kw}});
    launch.add(std::move(call));
}

}  // namespace dlprim::conv2d
