// SPDX-License-Identifier: MIT
// Barrier: where the threads of several devices wait for each other. It has a deadline, and ends
// for all of them as soon as one has failed, so that no thread waits for one that will not come.
//
// Threads: each rank arrives by one thread; any thread may call fail().
#pragma once

#include <dlprim/error.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace dlprim {

/// The longest of all waits, since clocks of nanoseconds reach no further than centuries. Who wants
/// to wait for ever, as by an infinite number of seconds, waits for 32 years.
constexpr std::chrono::duration<double> longest_wait{1e9};

class Barrier {
  public:
    /// `names` are those of the ranks in messages, as "device 0:1 (rank 1)".
    Barrier(std::vector<std::string> names, std::chrono::duration<double> deadline);

    /// Waits until all ranks have arrived. `what` says what for, in messages: "to add gradients".
    /// Throws the error of fail() if there was one; Error(device) that names who is missing after
    /// the deadline, which then is the error of all; and Error(device) where ranks arrive for
    /// different things.
    /// Each lane is a barrier of its own, whose failure is that of all: a rank may arrive in both
    /// at once, from two threads.
    enum Lane : std::uint8_t { sums, middle };
    void arrive(std::size_t rank, const std::string& what, Lane lane = sums);

    /// How long a waiting thread spins before it sleeps; 0 by default. To be set before anybody
    /// arrives. For teams of GPUs, which leave cores free for it.
    void set_spin(std::chrono::microseconds spin) { spin_ = spin; }
    std::chrono::microseconds spin() const { return spin_; }

    /// Makes every present and later arrive() throw. The first failure counts.
    void fail(std::size_t rank, const Error& error);
    /// Throws if a rank has failed.
    void check();

    const std::string& name(std::size_t rank) const { return names_.at(rank); }
    std::size_t size() const { return names_.size(); }
    std::chrono::duration<double> deadline() const { return deadline_; }

  private:
    void throw_failure() const;
    void set_failure(ErrorKind kind, std::string text);

    const std::vector<std::string> names_;
    const std::chrono::duration<double> deadline_;
    std::chrono::microseconds spin_{0};
    std::atomic<std::uint64_t> changes_{0};  ///< meetings that ended, and failures
    std::mutex mutex_;
    std::condition_variable changed_;
    struct Meeting {
        std::vector<bool> here;
        std::string what;          ///< of the first rank that has arrived
        std::size_t first = 0;     ///< that rank
        std::uint64_t passed = 0;  ///< how often all were here
    };
    Meeting meetings_[2];  ///< by lane
    bool failed_ = false;
    ErrorKind kind_ = ErrorKind::device;
    std::string failure_;
};

}  // namespace dlprim
