// SPDX-License-Identifier: MIT
// Deferred: one conversion at most, then plain memory.
#include "runtime/deferred.hpp"

#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

Deferred::Deferred(Context context, std::shared_ptr<Buffer> contents, Layout layout,
                   const Shape& shape, DType dtype, Convert convert)
    : context_(std::move(context)),
      layout_(std::move(layout)),
      shape_(shape),
      dtype_(dtype),
      convert_(convert),
      contents_(std::move(contents)) {}

std::uint64_t Deferred::plain_bytes() const noexcept {
    return static_cast<std::uint64_t>(shape_.numel()) * size_of(dtype_);
}

std::shared_ptr<Buffer> Deferred::contents() const {
    if (is_plain_.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex_);
    return contents_;
}

const std::shared_ptr<Buffer>& Deferred::plain() {
    return settle(true);
}

const std::shared_ptr<Buffer>& Deferred::overwrite() {
    return settle(false);
}

bool Deferred::take(std::shared_ptr<Buffer> contents, const Layout& layout) {
    const std::lock_guard lock(mutex_);
    if (is_plain_.load(std::memory_order_relaxed)) return false;
    if (!layout.is_plain()) {
        contents_ = std::move(contents);
        layout_ = layout;
        return true;
    }
    plain_ = std::move(contents);
    contents_.reset();
    is_plain_.store(true, std::memory_order_release);
    return true;
}

const std::shared_ptr<Buffer>& Deferred::settle(bool keep) {
    if (is_plain_.load(std::memory_order_acquire)) return plain_;
    const std::lock_guard lock(mutex_);
    if (is_plain_.load(std::memory_order_relaxed)) return plain_;
    std::shared_ptr<Buffer> made = Access::impl(context_).allocate_cached(plain_bytes());
    if (keep) convert_(*this, contents_, made);
    plain_ = std::move(made);
    contents_.reset();
    is_plain_.store(true, std::memory_order_release);
    return plain_;
}

}  // namespace dlprim
