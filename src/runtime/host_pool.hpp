// SPDX-License-Identifier: MIT
// HostPool: the threads of the host device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace dlprim {

class HostPool {
  public:
    /// `threads` 0: DLPRIM_THREADS, else one per core this process may use.
    explicit HostPool(int threads = 0);
    ~HostPool();
    HostPool(const HostPool&) = delete;
    HostPool& operator=(const HostPool&) = delete;

    int threads() const noexcept;
    /// Calls body(begin, end) over disjoint ranges that cover [0, count), in pieces of at least
    /// `grain`, and returns when all are done. How ranges are cut depends on count, grain and
    /// threads() alone; a result that must not depend on threads() must not depend on the cut. The
    /// first exception that a body throws is rethrown here. Not to be called from inside a body.
    void parallel_for(std::int64_t count, std::int64_t grain,
                      const std::function<void(std::int64_t, std::int64_t)>& body);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim
