// SPDX-License-Identifier: MIT
// Buffer: reference-counted device memory (host memory on the host, a cl_mem on OpenCL).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dlprim {

class Buffer {
  public:
    virtual ~Buffer() = default;
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// The address on the host, or nullptr for OpenCL memory.
    std::byte* host() const noexcept { return host_; }
    /// The cl_mem, or nullptr for host memory.
    void* handle() const noexcept { return handle_; }
    /// Unique in a process: distinguishes a buffer from a later one at the same address.
    std::uint64_t id() const noexcept { return id_; }
    /// Increases whenever the library writes to the buffer. Data derived from the contents (packed
    /// weights) are valid as long as it is unchanged. It means nothing for foreign memory, which
    /// others write to.
    std::uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
    void touch() const noexcept { version_.fetch_add(1, std::memory_order_relaxed); }
    /// Whether others may write to it without the library's knowledge: it was wrapped, or its
    /// address was given out.
    bool foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
    void set_foreign() noexcept { foreign_.store(true, std::memory_order_relaxed); }

  protected:
    Buffer(std::uint64_t bytes, std::byte* host, void* handle)
        : bytes_(bytes), host_(host), handle_(handle), id_(next_id()) {}

  private:
    static std::uint64_t next_id() noexcept;  // runtime/buffer.cpp
    std::uint64_t bytes_;
    std::byte* host_;
    void* handle_;
    std::uint64_t id_;
    mutable std::atomic<std::uint64_t> version_{0};
    std::atomic<bool> foreign_{false};
};

/// A place in a buffer, to which a launch binds an operand. The offset is a multiple of the element
/// size.
struct BufferRef {
    const Buffer* buffer = nullptr;
    std::uint64_t byte_offset = 0;
    std::byte* host() const noexcept { return buffer->host() + byte_offset; }
    bool operator==(const BufferRef&) const = default;
};

}  // namespace dlprim
