// SPDX-License-Identifier: MIT
// Access: the library's own way to what its public classes hide. They have no other friend
// (dlprim/internal.hpp), and this header is not installed: what a program sees of a class is what
// it may call.
#pragma once

#include <dlprim/tensor.hpp>

#include <memory>
#include <utility>

namespace dlprim {
namespace internal {

class Access {
  public:
    /// The ContextImpl of a Context, or the NetImpl of a Net. A template, since this room knows no
    /// nets. Of a Net that was moved from: throws Error(invalid_argument).
    template <typename Handle>
    static auto& impl(const Handle& handle) {
        return handle.impl();
    }
    /// The same as a pointer that keeps it.
    template <typename Handle>
    static auto shared_impl(const Handle& handle) {
        return handle.impl_;
    }

    /// A Context on a ContextImpl, or a Net on a NetImpl.
    template <typename Handle, typename Impl>
    static Handle handle(std::shared_ptr<Impl> impl) {
        return Handle(std::move(impl));
    }

    /// A row-major tensor in existing memory. Throws Error(invalid_argument) where that is null or
    /// too small, or the offset is not a multiple of an element's size.
    static Tensor tensor(const Context& context, std::shared_ptr<Buffer> buffer,
                         std::uint64_t byte_offset, const Shape& shape, DType dtype) {
        return Tensor(context, std::move(buffer), byte_offset, shape, dtype);
    }
    /// A tensor whose contents lie in an engine's own layout (runtime/deferred.hpp).
    static Tensor tensor(std::shared_ptr<Deferred> deferred) { return Tensor(std::move(deferred)); }

    /// An Event on an EventImpl.
    static Event event(std::shared_ptr<EventImpl> impl) { return Event(std::move(impl)); }

    /// The memory in row-major layout. May enqueue a conversion, which can throw
    /// Error(out_of_memory).
    static const std::shared_ptr<Buffer>& buffer(const Tensor& tensor) { return tensor.buffer(); }
    /// The same for who writes all of the tensor: contents that it covers need no conversion.
    static const std::shared_ptr<Buffer>& overwritten(const Tensor& tensor) {
        return tensor.overwritten();
    }
    /// Contents in an engine's own layout, or nullptr.
    static const std::shared_ptr<Deferred>& deferred(const Tensor& tensor) {
        return tensor.deferred_;
    }
};

}  // namespace internal

using internal::Access;

}  // namespace dlprim
