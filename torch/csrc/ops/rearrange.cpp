// SPDX-License-Identifier: MIT
// Elements in other places: reversed and rotated lines, and the gradient of windows.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <ATen/NativeFunctions.h>
#include <ATen/WrapDimUtilsMulti.h>

namespace dlprim_torch {
namespace {

at::Tensor flip(const at::Tensor& self, c10::IntArrayRef dims) {
    const auto chosen = at::dim_list_to_bitset(dims, static_cast<std::size_t>(self.dim()));
    std::vector<std::int64_t> axes;
    for (std::int64_t d = 0; d < self.dim(); ++d)
        if (chosen[static_cast<std::size_t>(d)]) axes.push_back(d);
    if (axes.empty() || self.numel() <= 1) return self.clone();
    return new_tensor(
        results_of(dp::ops::Flip{.dims = dp::ops::IntList(std::span(std::as_const(axes)))},
                   {view_of(self)})[0],
        self.device());
}

/// How far each dimension moves, from the last to the first, as a circular padding in front and
/// behind.
std::vector<std::int64_t> as_pads(c10::IntArrayRef sizes, c10::IntArrayRef shifts,
                                  c10::IntArrayRef dims) {
    const auto rank = static_cast<std::int64_t>(sizes.size());
    std::vector<std::int64_t> moves(sizes.size(), 0), pads;
    for (std::size_t i = 0; i < dims.size(); ++i)
        moves[static_cast<std::size_t>(at::maybe_wrap_dim(dims[i], rank))] += shifts[i];
    for (std::size_t d = sizes.size(); d-- > 0;) {
        const std::int64_t move = (moves[d] % sizes[d] + sizes[d]) % sizes[d];
        pads.push_back(move);
        pads.push_back(-move);
    }
    return pads;
}

at::Tensor roll(const at::Tensor& self, c10::SymIntArrayRef symbolic, c10::IntArrayRef dims) {
    const c10::IntArrayRef shifts = C10_AS_INTARRAYREF_SLOW(symbolic);
    TORCH_CHECK(!shifts.empty(), "`shifts` required");
    if (dims.empty() && shifts.size() == 1)
        return at::roll(self.reshape({-1}), shifts, {0}).view(self.sizes());
    TORCH_CHECK(shifts.size() == dims.size(),
                "shifts and dimensions must align. shifts: ", shifts.size(),
                ", dims:", dims.size());
    if (self.numel() == 0) return self.clone();
    if (!self.is_floating_point() || self.scalar_type() == at::kDouble)
        return at::native::roll(self, shifts, dims);  // Pad computes in float
    const std::vector<std::int64_t> pads = as_pads(self.sizes(), shifts, dims);
    return new_tensor(
        results_of(dp::ops::Pad{.pads = dp::ops::IntList(std::span(pads)), .mode = "circular"},
                   {view_of(self)})[0],
        self.device());
}

/// The sum of the gradients of all windows in which an element lies.
at::Tensor unfold_backward(const at::Tensor& grad, c10::SymIntArrayRef symbolic, std::int64_t dim,
                           std::int64_t size, std::int64_t step) {
    const c10::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
    const at::Tensor made = at::zeros(sizes, grad.options());
    const std::int64_t axis = at::maybe_wrap_dim(dim, static_cast<std::int64_t>(sizes.size()));
    if (grad.numel() == 0) return made;
    if (step >= size || sizes.empty()) {
        made.unfold(axis, size, step).copy_(grad);
        return made;
    }
    const at::Tensor named =
        at::arange(made.size(axis), grad.options().dtype(at::kLong)).unfold(0, size, step);
    return made.index_add(axis, named.reshape({-1}),
                          grad.movedim(-1, axis + 1).flatten(axis, axis + 1));
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("flip", flip);
    served.impl("roll", roll);
    served.impl("unfold_backward", unfold_backward);
}

}  // namespace
}  // namespace dlprim_torch
