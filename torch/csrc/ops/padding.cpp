// SPDX-License-Identifier: MIT
// Padding by reflection and by repetition of the edge, of one to three dimensions. Constant padding
// PyTorch makes of copies.
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <algorithm>

namespace dlprim_torch {
namespace {

constexpr const char* reflect = "reflect";
constexpr const char* replicate = "replicate";

dp::ops::Pad options_of(const char* mode, Ints padding) {
    return {.pads = dp::ops::IntList(std::span(padding.data(), padding.size())), .mode = mode};
}

/// The sizes of a padded tensor. Throws where the padding does not fit it.
std::vector<std::int64_t> padded_sizes(const char* mode, const at::Tensor& self, Ints padding) {
    const std::size_t rank = padding.size() / 2;
    const auto dims = static_cast<std::size_t>(self.dim());
    TORCH_CHECK(dims == rank + 1 || dims == rank + 2, "padding of ", rank,
                " dimensions needs [C, ...] or [N, C, ...], but got: ", self.sizes());
    std::vector<std::int64_t> sizes = self.sizes().vec();
    for (std::size_t i = 0; i < rank; ++i) {
        std::int64_t& size = sizes[dims - 1 - i];
        const std::int64_t before = padding[2 * i], after = padding[2 * i + 1];
        TORCH_CHECK(mode != reflect || (before < size && after < size),
                    "Padding size should be less than the corresponding input dimension, but got: "
                    "padding (",
                    before, ", ", after, ") of input ", self.sizes());
        TORCH_CHECK(size > 0 && size + before + after >= 1, "input ", self.sizes(),
                    " is too small for padding ", padding);
        size += before + after;
    }
    return sizes;
}

/// Padding that also crops: the padding without that, and the cropping alone. The library refuses
/// to crop all of a dimension before it pads the other end.
struct Cropped {
    std::vector<std::int64_t> padding, cropping;
    bool crops = false;

    explicit Cropped(Ints pads) {
        for (const std::int64_t pad : pads) {
            padding.push_back(std::max<std::int64_t>(pad, 0));
            cropping.push_back(std::min<std::int64_t>(pad, 0));
            crops |= pad < 0;
        }
    }
};

at::Tensor& pad_into(const char* mode, const at::Tensor& self, Ints padding, at::Tensor& out) {
    if (out.numel() == 0) return out;
    const Cropped parts(padding);
    const std::vector<dp::Tensor> made =
        results_of(options_of(mode, parts.padding), {view_of(self)});
    if (parts.crops)
        out.copy_(at::constant_pad_nd(new_tensor(made[0], self.device()), parts.cropping));
    else
        give(out, made[0]);
    return out;
}

/// Gradients of 16 bits are computed in float.
at::Tensor& gradient_into(const char* mode, const at::Tensor& grad_output, const at::Tensor& self,
                          Ints padding, at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return grad_input;
    if (grad_output.numel() == 0) return grad_input.zero_();
    Cropped parts(padding);
    for (std::int64_t& crop : parts.cropping) crop = -crop;
    const at::Tensor dy =
        parts.crops ? at::constant_pad_nd(grad_output, parts.cropping) : grad_output;
    give(grad_input,
         gradients_of(options_of(mode, parts.padding), {view_of(self)}, {}, {view_of(dy)})[0]);
    return grad_input;
}

/// Gradients of doubles are not computed.
bool serves_gradient(const at::Tensor& grad_output) {
    return serves(grad_output) && grad_output.scalar_type() != at::kDouble;
}

/// Of operators that have a meta function.
template <const char* const& mode, auto check>
at::Tensor& pad(const at::Tensor& self, Ints padding, at::Tensor& out) {
    check(out, self, padding);
    return pad_into(mode, self, padding, out);
}

template <const char* const& mode, auto check>
at::Tensor& pad_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints padding,
                         at::Tensor& grad_input) {
    check(grad_input, grad_output, self, padding);
    return gradient_into(mode, grad_output, self, padding, grad_input);
}

/// Of operators that have none.
template <const char* const& mode>
at::Tensor& plain_pad(const at::Tensor& self, Ints padding, at::Tensor& out) {
    at::native::resize_output(out, padded_sizes(mode, self, padding));
    return pad_into(mode, self, padding, out);
}

template <const char* const& mode>
at::Tensor& plain_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints padding,
                           at::Tensor& grad_input) {
    TORCH_CHECK(grad_output.sizes() == Ints(padded_sizes(mode, self, padding)),
                "grad_output of shape ", grad_output.sizes(), " is not that of input ",
                self.sizes(), " with padding ", padding);
    at::native::resize_output(grad_input, self.sizes());
    return gradient_into(mode, grad_output, self, padding, grad_input);
}

namespace meta = at::meta;

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves), gradients = m.where(serves_gradient);
    served.impl("reflection_pad1d.out", pad<reflect, meta::reflection_pad1d_out>);
    gradients.impl("reflection_pad1d_backward.grad_input",
                   pad_backward<reflect, meta::reflection_pad1d_backward_out>);
    served.impl("reflection_pad2d", into_new<plain_pad<reflect>>);
    served.impl("reflection_pad2d.out", plain_pad<reflect>);
    gradients.impl("reflection_pad2d_backward", into_new<plain_backward<reflect>>);
    gradients.impl("reflection_pad2d_backward.grad_input", plain_backward<reflect>);
    served.impl("reflection_pad3d.out", pad<reflect, meta::reflection_pad3d_out>);
    gradients.impl("reflection_pad3d_backward.grad_input",
                   pad_backward<reflect, meta::reflection_pad3d_backward_out>);
    served.impl("replication_pad1d.out", pad<replicate, meta::replication_pad1d_out>);
    gradients.impl("replication_pad1d_backward.grad_input",
                   pad_backward<replicate, meta::replication_pad1d_backward_out>);
    served.impl("replication_pad2d.out", pad<replicate, meta::replication_pad2d_out>);
    gradients.impl("replication_pad2d_backward", into_new<plain_backward<replicate>>);
    gradients.impl("replication_pad2d_backward.grad_input", plain_backward<replicate>);
    served.impl("replication_pad3d.out", pad<replicate, meta::replication_pad3d_out>);
    gradients.impl("replication_pad3d_backward", into_new<plain_backward<replicate>>);
    gradients.impl("replication_pad3d_backward.grad_input", plain_backward<replicate>);
}

}  // namespace
}  // namespace dlprim_torch
