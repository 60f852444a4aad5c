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

/// Of so many elements of the tensor's type.
inline std::uint64_t bytes_of(const Tensor& tensor, std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * size_of(tensor.dtype());
}

}  // namespace dlprim
