// SPDX-License-Identifier: MIT
// CopyLaunches: ready launches of strided copies, by sizes and strides. Copies of tensors and eager
// calls on strided views use them, so that a repeated copy only looks its launch up and enqueues
// it.
#pragma once

#include "base/lru_map.hpp"
#include "engine/launch.hpp"
#include "engine/strided_copy.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// Where the elements of a tensor lie. They are addressed by strides, in elements.
struct StridedPlace {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t byte_offset = 0;
    std::vector<std::int64_t> strides;
};

/// Not thread-safe: the context's calls are enqueued one after the other.
class CopyLaunches {
  public:
    /// Enqueues a copy of `shape` elements of `element_bytes`. The places must not overlap. Does
    /// not wait.
    void copy(ContextImpl& context, const Shape& shape, std::size_t element_bytes,
              const StridedPlace& from, const StridedPlace& to);

  private:
    static constexpr std::size_t most_kept = 4096;
    LruMap<std::shared_ptr<Launch>> launches_{most_kept};
    std::string key_;  ///< the key of the current copy
};

/// Enqueues the copy among the calls of the context (exec/eager_cache.cpp). Does not wait, nor
/// flush.
void enqueue_copy(const Context& context, const Shape& shape, std::size_t element_bytes,
                  const StridedPlace& from, const StridedPlace& to);

}  // namespace dlprim
