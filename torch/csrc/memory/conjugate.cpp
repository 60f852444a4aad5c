// SPDX-License-Identifier: MIT
// Copies from and to tensors with a bit of conjugation or negation. PyTorch's own way for such
// operands clones them first, which for a copy ends in the same copy again, without end.
#include "common.hpp"

namespace dlprim_torch {
namespace {

/// Conjugates or negates what was copied.
void resolve(const at::Tensor& copied, bool conjugates) {
    if (conjugates && !copied.is_complex()) return;
    const at::Tensor parts = copied.is_complex() ? at::view_as_real(copied) : copied;
    (conjugates ? parts.select(-1, 1) : parts).neg_();
}

/// The kernel of _copy_from behind `key`: copies without the bit, and resolves it afterwards.
template <c10::DispatchKey key>
at::Tensor copy_beyond(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& dst,
                       bool non_blocking) {
    constexpr bool conjugates = key == c10::DispatchKey::Conjugate;
    const auto has_bit = [](const at::Tensor& t) { return conjugates ? t.is_conj() : t.is_neg(); };
    const auto flipped = [](const at::Tensor& t) { return conjugates ? t.conj() : t._neg_view(); };
    const bool from = has_bit(self), to = has_bit(dst);
    const at::Tensor target = to ? flipped(dst) : dst;
    if (from || to) {
        at::_copy_from(from ? flipped(self) : self, target, non_blocking);
        if (from != to) resolve(target, conjugates);
        return dst;
    }
    const c10::DispatchKeySet rest(c10::DispatchKeySet::FULL_AFTER, key);
    return at::_ops::_copy_from::redispatch(keys & rest, self, dst, non_blocking);
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
    m.impl("_copy_from", TORCH_FN(copy_beyond<c10::DispatchKey::Conjugate>));
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
    m.impl("_copy_from", TORCH_FN(copy_beyond<c10::DispatchKey::Negative>));
}

}  // namespace
}  // namespace dlprim_torch
