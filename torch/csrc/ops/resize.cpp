// SPDX-License-Identifier: MIT
// Images in another size, of one to three dimensions, and images sampled at given places. The meta
// functions check the arguments, and give out= its size.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <array>
#include <initializer_list>
#include <tuple>

namespace dlprim_torch {
namespace {

using Scale = std::optional<double>;

/// How elements between those of the input are made.
struct Method {
    const char* name;
    bool antialias = false;
};
constexpr Method nearest{"nearest"}, nearest_exact{"nearest-exact"}, linear{"linear"},
    cubic{"cubic"}, linear_aa{"linear", true}, cubic_aa{"cubic", true};

/// A scale that is not given follows from the sizes, as it does if none is. Where corners are
/// aligned, scales do not count.
dp::ops::Resize options_of(const Method& method, Ints from, Ints to, bool align_corners,
                           std::initializer_list<Scale> scales) {
    dp::ops::Resize made{.method = method.name,
                         .output = dp::ops::IntList(std::span(to.data(), to.size())),
                         .align_corners = align_corners,
                         .antialias = method.antialias};
    const auto given = [](const Scale& scale) { return scale && *scale > 0; };
    if (align_corners || std::none_of(scales.begin(), scales.end(), given)) return made;
    for (std::size_t d = 0; d < to.size(); ++d) {
        const Scale& scale = scales.begin()[d];
        made.scales.push_back(
            given(scale) ? *scale : static_cast<double>(to[d]) / static_cast<double>(from[d + 2]));
    }
    return made;
}

dp::ops::Resize options_of(const Method& method, Ints from, Ints to,
                           std::initializer_list<Scale> scales) {
    return options_of(method, from, to, false, scales);
}

template <typename... Scales>
dp::ops::Resize described(const Method& method, Ints from, Ints to, bool align_corners,
                          Scales... scales) {
    return options_of(method, from, to, align_corners, {scales...});
}

template <typename... Scales>
dp::ops::Resize described(const Method& method, Ints from, Ints to, Scale first, Scales... scales) {
    return options_of(method, from, to, {first, scales...});
}

/// `More` are the operator's further arguments: perhaps align_corners, and a scale for each
/// dimension. Bytes are computed in float and rounded.
template <const Method& method, auto check, typename... More>
at::Tensor& resize(const at::Tensor& self, Ints size, More... more, at::Tensor& out) {
    check(out, self, size, more...);
    if (out.numel() == 0) return out;
    const dp::ops::Resize options = described(method, self.sizes(), size, more...);
    if (at::isFloatingType(self.scalar_type())) {
        give(out, results_of(options, {view_of(self)})[0]);
        return out;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == at::kByte, "Images of ", self.scalar_type(),
                                " cannot be resized.");
    const at::Tensor floats =
        new_tensor(results_of(options, {view_of(self.to(at::kFloat))})[0], self.device());
    out.copy_(floats.round().clamp(0, 255));
    return out;
}

/// Of the input only the shape counts; its memory is that of the result.
template <const Method& method, auto check, typename... More>
at::Tensor& resize_backward(const at::Tensor& grad_output, Ints size, Ints input_size, More... more,
                            at::Tensor& grad_input) {
    check(grad_input, grad_output, size, input_size, more...);
    if (grad_input.numel() == 0) return grad_input;
    const dp::Tensor dy = view_of(grad_output);
    const dp::Tensor x = translated([&] {
        return dp::Tensor(dy.context(), dp::Shape(std::span(input_size.data(), input_size.size())),
                          dy.dtype());
    });
    give(grad_input, gradients_of(described(method, input_size, size, more...), {x}, {}, {dy})[0]);
    return grad_input;
}

dp::ops::GridSample sampling(std::int64_t mode, std::int64_t padding, bool align_corners) {
    constexpr std::array modes{"bilinear", "nearest", "bicubic"};
    constexpr std::array paddings{"zeros", "border", "reflection"};
    return {.mode = modes.at(static_cast<std::size_t>(mode)),
            .padding_mode = paddings.at(static_cast<std::size_t>(padding)),
            .align_corners = align_corners};
}

at::Tensor grid_sampler(const at::Tensor& input, const at::Tensor& grid, std::int64_t mode,
                        std::int64_t padding, bool align_corners) {
    const c10::DeviceGuard guard(input.device());
    at::Tensor out =
        at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2)}, input.options());
    if (out.numel() > 0)
        give(out, results_of(sampling(mode, padding, align_corners),
                             {view_of(input), view_of(grid)})[0]);
    return out;
}

std::tuple<at::Tensor, at::Tensor> grid_sampler_backward(const at::Tensor& grad_output,
                                                         const at::Tensor& input,
                                                         const at::Tensor& grid, std::int64_t mode,
                                                         std::int64_t padding, bool align_corners,
                                                         std::array<bool, 2> mask) {
    const c10::DeviceGuard guard(input.device());
    if (grad_output.numel() == 0)
        return {mask[0] ? at::zeros_like(input) : at::Tensor(),
                mask[1] ? at::zeros_like(grid) : at::Tensor()};
    dp::ops::CallOptions how;
    how.wanted.assign(mask.begin(), mask.end());
    const std::vector<dp::Tensor> made =
        gradients_of(sampling(mode, padding, align_corners), {view_of(input), view_of(grid)}, {},
                     {view_of(grad_output)}, how);
    return {mask[0] ? new_tensor(made[0], input.device()) : at::Tensor(),
            mask[1] ? new_tensor(made[1], input.device()) : at::Tensor()};
}

bool holds_floats(const at::Tensor& image) {
    return at::isFloatingType(image.scalar_type());
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("upsample_nearest1d.out", resize<nearest, at::meta::upsample_nearest1d_out, Scale>);
    m.impl("upsample_nearest2d.out",
           resize<nearest, at::meta::upsample_nearest2d_out, Scale, Scale>);
    m.impl("upsample_nearest3d.out",
           resize<nearest, at::meta::upsample_nearest3d_out, Scale, Scale, Scale>);
    m.impl("_upsample_nearest_exact1d.out",
           resize<nearest_exact, at::meta::_upsample_nearest_exact1d_out, Scale>);
    m.impl("_upsample_nearest_exact2d.out",
           resize<nearest_exact, at::meta::_upsample_nearest_exact2d_out, Scale, Scale>);
    m.impl("_upsample_nearest_exact3d.out",
           resize<nearest_exact, at::meta::_upsample_nearest_exact3d_out, Scale, Scale, Scale>);
    m.impl("upsample_linear1d.out", resize<linear, at::meta::upsample_linear1d_out, bool, Scale>);
    m.impl("upsample_bilinear2d.out",
           resize<linear, at::meta::upsample_bilinear2d_out, bool, Scale, Scale>);
    m.impl("upsample_trilinear3d.out",
           resize<linear, at::meta::upsample_trilinear3d_out, bool, Scale, Scale, Scale>);
    // Of bytes PyTorch's cubic has other weights than of floats.
    const KernelsOfSome of_floats = m.where(holds_floats);
    of_floats.impl("upsample_bicubic2d.out",
                   resize<cubic, at::meta::upsample_bicubic2d_out, bool, Scale, Scale>);
    m.impl("_upsample_bilinear2d_aa.out",
           resize<linear_aa, at::meta::_upsample_bilinear2d_aa_out, bool, Scale, Scale>);
    of_floats.impl("_upsample_bicubic2d_aa.out",
                   resize<cubic_aa, at::meta::_upsample_bicubic2d_aa_out, bool, Scale, Scale>);
    m.impl("grid_sampler_2d", grid_sampler);
    m.impl("grid_sampler_2d_backward", grid_sampler_backward);
    m.impl("upsample_nearest1d_backward.grad_input",
           resize_backward<nearest, at::meta::upsample_nearest1d_backward_out, Scale>);
    m.impl("upsample_nearest2d_backward.grad_input",
           resize_backward<nearest, at::meta::upsample_nearest2d_backward_out, Scale, Scale>);
    m.impl(
        "upsample_nearest3d_backward.grad_input",
        resize_backward<nearest, at::meta::upsample_nearest3d_backward_out, Scale, Scale, Scale>);
    m.impl("_upsample_nearest_exact1d_backward.grad_input",
           resize_backward<nearest_exact, at::meta::_upsample_nearest_exact1d_backward_out, Scale>);
    m.impl("_upsample_nearest_exact2d_backward.grad_input",
           resize_backward<nearest_exact, at::meta::_upsample_nearest_exact2d_backward_out, Scale,
                           Scale>);
    m.impl("_upsample_nearest_exact3d_backward.grad_input",
           resize_backward<nearest_exact, at::meta::_upsample_nearest_exact3d_backward_out, Scale,
                           Scale, Scale>);
    m.impl("upsample_linear1d_backward.grad_input",
           resize_backward<linear, at::meta::upsample_linear1d_backward_out, bool, Scale>);
    m.impl("upsample_bilinear2d_backward.grad_input",
           resize_backward<linear, at::meta::upsample_bilinear2d_backward_out, bool, Scale, Scale>);
    m.impl("upsample_trilinear3d_backward.grad_input",
           resize_backward<linear, at::meta::upsample_trilinear3d_backward_out, bool, Scale, Scale,
                           Scale>);
    m.impl("upsample_bicubic2d_backward.grad_input",
           resize_backward<cubic, at::meta::upsample_bicubic2d_backward_out, bool, Scale, Scale>);
    m.impl("_upsample_bilinear2d_aa_backward.grad_input",
           resize_backward<linear_aa, at::meta::_upsample_bilinear2d_aa_backward_out, bool, Scale,
                           Scale>);
    m.impl("_upsample_bicubic2d_aa_backward.grad_input",
           resize_backward<cubic_aa, at::meta::_upsample_bicubic2d_aa_backward_out, bool, Scale,
                           Scale>);
}

}  // namespace
}  // namespace dlprim_torch
