// SPDX-License-Identifier: MIT
// BufferPool: freed buffers kept by size class, so that a second request of a size is a look-up.
#pragma once

#include "runtime/buffer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace dlprim {

/// Size classes are 2^k and 1.5 * 2^k bytes, at least 256: a request wastes at most a third.
std::uint64_t size_class(std::uint64_t bytes) noexcept;

class BufferPool {
  public:
    /// A kept buffer of exactly `bytes`, or nothing.
    std::unique_ptr<Buffer> take(std::uint64_t bytes);
    void keep(std::unique_ptr<Buffer> buffer);
    /// Lets all kept buffers go; true when there were any.
    bool clear();

  private:
    std::mutex mutex_;
    std::map<std::uint64_t, std::vector<std::unique_ptr<Buffer>>> kept_;
};

}  // namespace dlprim
