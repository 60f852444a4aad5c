// SPDX-License-Identifier: MIT
// HostPool: the thread pool of the host device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace dlprim {

class HostPool {
  public:
    /// `threads` 0 means DLPRIM_THREADS, or else one per core that this process may use.
    explicit HostPool(int threads = 0);
    ~HostPool();
    HostPool(const HostPool&) = delete;
    HostPool& operator=(const HostPool&) = delete;

    int threads() const noexcept;
    /// Calls body(begin, end) on disjoint ranges that cover [0, count), in pieces of at least
    /// `grain`, and returns when all calls are done. The pieces depend on count, grain and
    /// threads() only. A result that must not depend on threads() must not depend on the pieces
    /// either. The first exception that a body throws is rethrown here. Must not be called from
    /// inside a body.
    void parallel_for(std::int64_t count, std::int64_t grain,
                      const std::function<void(std::int64_t, std::int64_t)>& body);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
