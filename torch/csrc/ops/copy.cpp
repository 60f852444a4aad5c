// SPDX-License-Identifier: MIT
// Copies of tensors between the host and devices, and within a device.
#include "device/errors.hpp"
#include "memory/convert.hpp"
#include "memory/staging.hpp"
#include "memory/view.hpp"
#include "ops/call.hpp"
#include "ops/checks.hpp"

#include <ATen/native/Resize.h>

namespace dlprim_torch {
namespace {

bool is_ours(const at::Tensor& tensor) {
    return tensor.device().type() == c10::DeviceType::PrivateUse1;
}

/// The values of `from` in the shape and type of `to`, on the CPU, row-major.
at::Tensor as_on_host(const at::Tensor& from, const at::Tensor& to) {
    return from.resolve_conj().resolve_neg().to(to.scalar_type()).expand(to.sizes()).contiguous();
}

void copy_in(const at::Tensor& from, const at::Tensor& to, bool waits = true) {
    const at::Tensor values = as_on_host(from, to);
    dp::Tensor target = bits_of(to);
    if (!waits && copy_from_pinned(values, target, to.get_device())) return;
    const bool own = values.use_count() == 1 && !values.is_alias_of(from);
    copy_from_host(values, own, target, to.get_device());
}

void copy_out(const at::Tensor& from, const at::Tensor& to, bool waits) {
    const bool same_bits = from.scalar_type() == to.scalar_type() && to.is_contiguous() &&
                           from.is_conj() == to.is_conj() && from.is_neg() == to.is_neg();
    if (!waits && same_bits && copy_to_pinned(bits_of(from), to, from.get_device())) return;
    const at::Tensor values = at::empty(from.sizes(), from.options().device(at::kCPU));
    if (from.numel() > 0) {
        const dp::Tensor source = bits_of(from);
        translated([&] { source.copy_to_host(values.mutable_data_ptr(), values.nbytes()); }, true);
    }
    if (from.is_conj()) values._set_conj(true);
    if (from.is_neg()) values._set_neg(true);
    to.copy_(values);
}

void copy_within(const at::Tensor& from, const at::Tensor& to) {
    const at::Tensor source = from.sizes() == to.sizes() ? from : from.expand(to.sizes());
    const bool moves = from.scalar_type() == to.scalar_type() && from.is_conj() == to.is_conj() &&
                       from.is_neg() == to.is_neg();
    const bool converts =
        has_dtype(from.scalar_type()) && has_dtype(to.scalar_type()) && !to.is_neg();
    if (moves)
        copy(bits_of(source), bits_of(to));
    else if (converts && source.is_contiguous() && is_whole(to) && memory_of(to).fresh())
        // What an engine wrote in a layout of its own stays in that layout.
        call_into({to}, dp::ops::Cast{.dtype = dtype_of(to.scalar_type())}, {view_of(source)});
    else if (converts)
        copy(view_of(source), view_of(to));
    else  // complex numbers are converted by the host
        copy_in(source.cpu(), to);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
    if (dst.numel() == 0 || self.is_same(dst)) return dst;
    if (is_ours(dst)) check_written(dst);
    check_overlap(dst, self, Overlap::same);
    if (!is_ours(self)) {
        copy_in(self.cpu(), dst, !non_blocking);
    } else if (!is_ours(dst)) {
        if (dst.is_cpu())
            copy_out(self.expand(dst.sizes()), dst, !non_blocking);
        else
            dst.copy_(self.cpu());
    } else if (self.device() != dst.device()) {
        copy_in(self.cpu(), dst);
    } else {
        copy_within(self, dst);
    }
    return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
    if (self.sizes() != dst.sizes()) at::native::resize_output(dst, self.sizes());
    return copy_from(self, dst, false);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl_unchecked("_copy_from", copy_from);
    m.impl_unchecked("_copy_from_and_resize", copy_from_and_resize);
}

}  // namespace
}  // namespace dlprim_torch
