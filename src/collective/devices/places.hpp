// SPDX-License-Identifier: MIT
// Where tensors lie, for those who move their bytes.
#pragma once

#include "runtime/context_impl.hpp"

#include <dlprim/tensor.hpp>

#include <cstdint>

namespace dlprim {

inline BufferRef place_of(const Tensor& tensor) {
    return {Access::buffer(tensor).get(), tensor.byte_offset()};
}

/// What tells one memory from another, on the host and with OpenCL.
inline const void* memory_of(const Tensor& tensor) {
    const Buffer& buffer = *Access::buffer(tensor);
    return buffer.handle() == nullptr ? static_cast<const void*>(buffer.host()) : buffer.handle();
}

/// Whether two tensors of equal size are the same elements.
inline bool are_same(const Tensor& a, const Tensor& b) {
    return memory_of(a) == memory_of(b) &&
           place_of(a).handle_offset() == place_of(b).handle_offset();
}

/// Of so many elements of the tensor's type.
inline std::uint64_t bytes_of(const Tensor& tensor, std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * size_of(tensor.dtype());
}

}  // namespace dlprim
