// SPDX-License-Identifier: MIT
// PinnedMemory: host memory from which a device's driver copies fast and without waiting. Copies
// that do not wait (Tensor::copy_from_host_async()) take any memory; from other memory drivers may
// copy slower, or wait after all.
//
// Ownership: copies of a PinnedMemory share the bytes, which are freed with the last of them. The
// program keeps one until copies from and to it are done. It keeps the device open.
//
// Threads: different objects may be used by different threads. The bytes are the program's to
// order.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dlprim {

class PinnedMemory {
  public:
    PinnedMemory() = default;
    /// New memory for copies from and to the context's device, contents undefined. On the host it
    /// is ordinary memory. Allocation takes a driver some 100 us, so that a program keeps it.
    /// Throws Error(out_of_memory).
    PinnedMemory(const Context& context, std::uint64_t bytes);

    /// The address, aligned to 64 bytes or more; nullptr for a default-made one.
    std::byte* data() const noexcept { return data_.get(); }
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    std::shared_ptr<std::byte> data_;
    std::uint64_t bytes_ = 0;
};

}  // namespace dlprim
