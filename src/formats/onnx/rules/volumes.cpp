// SPDX-License-Identifier: MIT
// Convolutions of three dimensions; see volumes.hpp.
#include "formats/onnx/rules/volumes.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Of the kernel, each of which is an operator: of those that are summed, and of those that are
/// concatenated.
constexpr std::int64_t most_kernel_slices = 64, most_parts = 1024;

/// Zeros in front of and behind a dimension, or with negative numbers less of it.
Ref padded(Builder& build, Ref x, int dim, std::int64_t front, std::int64_t behind) {
    const auto cut = [&](std::int64_t begin, std::int64_t end) {
        if (begin == 0 && end == x->spec.shape[dim]) return;
        x = build.slice(x, dim, begin, end);
    };
    cut(std::max<std::int64_t>(-front, 0), x->spec.shape[dim] - std::max<std::int64_t>(-behind, 0));
    front = std::max<std::int64_t>(front, 0);
    behind = std::max<std::int64_t>(behind, 0);
    if (front == 0 && behind == 0) return x;
    Ints pads(2 * static_cast<std::size_t>(x->spec.shape.rank() - dim), 0);  // from the last on
    pads[pads.size() - 2] = front;
    pads[pads.size() - 1] = behind;
    return build.add1("Pad", {x}, {{"pads", pads}, {"mode", "constant"}, {"value", 0.0}});
}

/// Windows of the last two dimensions alone.
Attrs flat_options(const Windows& windows, std::int64_t channels_in, std::int64_t channels_out,
                   std::int64_t groups) {
    const auto last = [](const Ints& all) { return Ints{all[1], all[2]}; };
    return {{"channels_in", channels_in},
            {"channels_out", channels_out},
            {"groups", groups},
            {"bias", false},
            {"kernel", last(windows.kernel)},
            {"stride", last(windows.stride)},
            {"dilate", last(windows.dilation)},
            {"pad", Ints{windows.pad[1], windows.pad[2], windows.pad[4], windows.pad[5]}}};
}

/// [N, D, C, H, W] as [N, C, D, H, W], plus a bias.
Ref finished(Builder& build, Ref y, Ref bias) {
    y = build.transpose(y, {0, 2, 1, 3, 4});
    if (!bias) return y;
    return build.pointwise("y0 = x0 + x1",
                           {y, build.reshape(bias, {bias->spec.shape.numel(), 1, 1, 1})},
                           y->spec.dtype);
}

}  // namespace

Ref volume_convolution(Call& call, Ref x, Ref weight, Ref bias, const Windows& windows,
                       std::int64_t groups) {
    Builder& build = call.build;
    const Shape shape = x->spec.shape, w = weight->spec.shape;
    const std::int64_t kernel = windows.kernel[0], stride = windows.stride[0],
                       dilation = windows.dilation[0], reach = (kernel - 1) * dilation + 1;
    call.supports(kernel <= most_parts, "a kernel of ", kernel,
                  " elements along the first dimension");
    const std::int64_t deep = shape[2] + windows.pad[0] + windows.pad[3];
    call.check(deep >= reach, "a kernel of ", kernel, " elements does not fit an input of shape ",
               shape.str());
    const std::int64_t slices = (deep - reach) / stride + 1;
    // As deep as the last window's last stride needs.
    const std::int64_t wanted = (kernel - 1) * dilation + slices * stride;
    x = padded(build, x, 2, windows.pad[0], wanted - shape[2] - windows.pad[0]);
    std::vector<Ref> parts;
    for (std::int64_t k = 0; k < kernel; ++k) {
        const std::int64_t begin = k * dilation;
        Ref part = padded(build, x, 2, -begin, begin + slices * stride - wanted);
        if (stride > 1) {
            part = build.reshape(part, {shape[0], shape[1], slices, stride, shape[3], shape[4]});
            part = build.slice(part, 3, 0, 1);
        }
        parts.push_back(build.reshape(part, {shape[0], shape[1], slices, 1, shape[3], shape[4]}));
    }
    Ref seen = build.concat(parts, 3);
    seen = build.transpose(seen, {0, 2, 1, 3, 4, 5});
    seen = build.reshape(seen, {shape[0] * slices, shape[1] * kernel, shape[3], shape[4]});
    const Ref flat = build.reshape(weight, {w[0], w[1] * kernel, w[3], w[4]});
    const Ref y = build.add1("Convolution2D", {seen},
                             flat_options(windows, shape[1] * kernel, w[0], groups), {flat});
    const Shape& made = y->spec.shape;
    return finished(build, build.reshape(y, {shape[0], slices, w[0], made[2], made[3]}), bias);
}

Ref volume_transposed_convolution(Call& call, Ref x, Ref weight, Ref bias, const Windows& windows,
                                  const Ints& output_pad, std::int64_t groups) {
    Builder& build = call.build;
    const Shape shape = x->spec.shape, w = weight->spec.shape;
    const std::int64_t kernel = windows.kernel[0], stride = windows.stride[0],
                       outputs = w[1] * groups;
    call.supports(kernel <= most_kernel_slices, "a kernel of ", kernel,
                  " elements along the first dimension");
    const Ref slices = build.reshape(build.transpose(x, {0, 2, 1, 3, 4}),
                                     {shape[0] * shape[2], shape[1], shape[3], shape[4]});
    const Ref flat = build.reshape(weight, {w[0], w[1] * kernel, w[3], w[4]});
    Attrs options = flat_options(windows, shape[1], outputs * kernel, groups);
    options.set("output_pad", Ints{output_pad[1], output_pad[2]});
    const Ref parts = build.add1("TransposedConvolution2D", {slices}, options, {flat});
    const std::int64_t height = parts->spec.shape[2], width = parts->spec.shape[3];
    const Ref by_kernel =
        build.reshape(parts, {shape[0], shape[2], outputs, kernel, height, width});
    const std::int64_t size = (shape[2] - 1) * stride + (kernel - 1) * windows.dilation[0] + 1 +
                              output_pad[0] - windows.pad[0] - windows.pad[3];
    Ref sum = nullptr;
    for (std::int64_t k = 0; k < kernel; ++k) {
        Ref part = kernel == 1 ? by_kernel : build.slice(by_kernel, 3, k, k + 1);
        // Each slice is followed by the zeros of the stride, then the row is moved to its place.
        part = build.reshape(part, {shape[0], shape[2], 1, outputs, height, width});
        part = padded(build, part, 2, 0, stride - 1);
        part = build.reshape(part, {shape[0], shape[2] * stride, outputs, height, width});
        const std::int64_t front = k * windows.dilation[0] - windows.pad[0];
        part = padded(build, part, 1, front, size - front - shape[2] * stride);
        sum = sum ? build.pointwise("y0 = x0 + x1", {sum, part}) : part;
    }
    return finished(build, sum, bias);
}

}  // namespace dlprim::onnx
