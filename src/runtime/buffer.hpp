// SPDX-License-Identifier: MIT
// Buffer: reference-counted device memory (host memory on the host, a cl_mem on OpenCL), or a block
// of such memory that several buffers share (runtime/block_pool.hpp).
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
    /// The cl_mem, or nullptr for host memory. Blocks of one cl_mem have the same.
    void* handle() const noexcept { return handle_; }
    /// Where the buffer starts in handle(), in bytes; 0 unless it is a block.
    std::uint64_t offset() const noexcept { return offset_; }
    /// Of the memory behind handle(), unique in a process: distinguishes it from later memory at
    /// the same address. Blocks of one memory have the same.
    std::uint64_t id() const noexcept { return id_; }
    /// Changes whenever the library writes to the buffer, and differs between the buffers that have
    /// been at one place one after the other. Data derived from the contents (packed weights) are
    /// valid as long as id(), the place and the version are unchanged. It means nothing for foreign
    /// memory, which others write to.
    std::uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
    /// The version's part that tells buffers of one place from each other.
    std::uint64_t generation() const noexcept { return version() >> 32; }
    void touch() const noexcept { version_.fetch_add(1, std::memory_order_relaxed); }
    /// Whether others may write to it without the library's knowledge: it was wrapped, or its
    /// address was given out.
    bool foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
    void set_foreign() noexcept { foreign_.store(true, std::memory_order_relaxed); }

  protected:
    Buffer(std::uint64_t bytes, std::byte* host, void* handle)
        : bytes_(bytes), host_(host), handle_(handle), id_(next_id()) {}
    /// The block of `bytes` bytes that starts `offset` bytes into `whole`, which outlives it.
    Buffer(const Buffer& whole, std::uint64_t offset, std::uint64_t bytes)
        : bytes_(bytes),
          offset_(offset),
          host_(whole.host_ == nullptr ? nullptr : whole.host_ + offset),
          handle_(whole.handle_),
          id_(whole.id_),
          version_(next_id() << 32) {}

  private:
    static std::uint64_t next_id() noexcept;  // runtime/buffer.cpp
    std::uint64_t bytes_;
    std::uint64_t offset_ = 0;
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
    /// The offset in buffer->handle().
    std::uint64_t handle_offset() const noexcept { return buffer->offset() + byte_offset; }
    bool operator==(const BufferRef&) const = default;
};

}  // namespace dlprim
