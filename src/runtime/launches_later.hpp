// SPDX-License-Identifier: MIT
// LaunchesLater: leaves launches to a thread of the context (runtime/launch_thread.hpp).
#pragma once

#include <string_view>

namespace dlprim {

/// While it lives, launches, fills, copies and flushes of the calling thread may be recorded, where
/// the context has a LaunchThread. Elsewhere the caller enqueues them, and an error is thrown by
/// the call that it belongs to.
class LaunchesLater {
  public:
    /// `owner`: whose launches they are, for errors that are thrown after the call. It must outlive
    /// this object. Nothing is recorded if it is empty.
    explicit LaunchesLater(std::string_view owner) : before_(owner_) { owner_ = owner; }
    ~LaunchesLater() { owner_ = before_; }
    LaunchesLater(const LaunchesLater&) = delete;
    LaunchesLater& operator=(const LaunchesLater&) = delete;
    static bool wanted() noexcept { return !owner_.empty(); }
    static std::string_view owner() noexcept { return owner_; }

  private:
    std::string_view before_;
    static thread_local std::string_view owner_;
};

}  // namespace dlprim
