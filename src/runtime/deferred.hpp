// SPDX-License-Identifier: MIT
// Deferred: the contents of a tensor in a layout other than plain. They are converted when somebody
// asks for plain memory. An operator in place gives it new contents in a layout of its choice.
//
// All tensors on the same memory (copies, views) share one Deferred. It holds either its contents
// in layout() or plain memory, never both. Once plain it stays plain, because whoever got that
// memory may write to it at any time.
#pragma once

#include "base/layout.hpp"
#include "runtime/buffer.hpp"

#include <dlprim/context.hpp>
#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace dlprim {

class Deferred {
  public:
    /// Enqueues the conversion of `contents`, whose layout is from.layout(), to `plain`. Does not
    /// wait.
    using Convert = void (*)(const Deferred& from, const std::shared_ptr<Buffer>& contents,
                             const std::shared_ptr<Buffer>& plain);

    Deferred(Context context, std::shared_ptr<Buffer> contents, Layout layout, const Shape& shape,
             DType dtype, Convert convert);

    const Context& context() const { return context_; }
    const Layout& layout() const noexcept { return layout_; }
    const Shape& shape() const noexcept { return shape_; }
    DType dtype() const noexcept { return dtype_; }
    std::uint64_t plain_bytes() const noexcept;

    /// The contents in layout(), for reading only, or nullptr once they are plain.
    std::shared_ptr<Buffer> contents() const;
    /// Plain memory with the contents. The first call allocates it and enqueues the conversion. If
    /// that throws, the contents stay unchanged.
    const std::shared_ptr<Buffer>& plain();
    /// The same for a caller that overwrites all elements: the contents are dropped, not converted.
    const std::shared_ptr<Buffer>& overwrite();
    /// Takes new contents, which may be in another layout, or plain, in the place of its own. Does
    /// nothing and returns false once it is plain, since others may hold that memory. Nobody may
    /// read it meanwhile.
    bool take(std::shared_ptr<Buffer> contents, const Layout& layout);

  private:
    const std::shared_ptr<Buffer>& settle(bool keep);

    Context context_;
    Layout layout_;
    Shape shape_;
    DType dtype_;
    Convert convert_;
    mutable std::mutex mutex_;
    std::shared_ptr<Buffer> contents_, plain_;
    std::atomic<bool> is_plain_{false};
};

}  // namespace dlprim
