// SPDX-License-Identifier: MIT
// BufferPool: keeps freed buffers by size class, so that the next request of a size needs no
// allocation.
#pragma once

#include "runtime/buffer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace dlprim {

/// Size classes are 2^k and 1.5 * 2^k bytes, at least 256, so a request wastes at most a third.
std::uint64_t size_class(std::uint64_t bytes) noexcept;

class BufferPool {
  public:
    /// A kept buffer of exactly `bytes`, or nothing.
    std::unique_ptr<Buffer> take(std::uint64_t bytes);
    void keep(std::unique_ptr<Buffer> buffer);
    /// Frees all kept buffers. Returns whether there were any.
    bool clear();

  private:
    std::mutex mutex_;
    std::map<std::uint64_t, std::vector<std::unique_ptr<Buffer>>> kept_;
};

}  // namespace dlprim
