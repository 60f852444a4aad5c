// SPDX-License-Identifier: MIT
// HostBoard: what the processes of a host tell each other in shared memory while they exchange
// tensors in steps: how many steps each has ended, a note, and that one has left or failed.
//
// The processes make the same steps. In step t a process first waits until all have ended t steps,
// then writes what others read in step t + 1. So two places in turn serve everything that is
// written: who writes to the place of step t again, in step t + 2, has waited for those who read it
// in step t + 1.
//
// Deaths are found by pidfd_open(): a process that has ended, however it did, is noticed by those
// who wait for it.
//
// Threads: one at a time, except leave().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class HostBoard {
  public:
    using Deadline = std::chrono::duration<double>;
    static constexpr std::size_t note_bytes = 256;
    /// The bytes of a process's page.
    static std::uint64_t page_bytes();

    /// `pages` and `processes` (their ids): of all, by rank. Pages are all zeros at first. Throws
    /// Error(unsupported) where the system cannot watch processes.
    HostBoard(std::size_t rank, std::vector<std::shared_ptr<std::byte>> pages,
              std::vector<int> processes);
    ~HostBoard();
    HostBoard(const HostBoard&) = delete;
    HostBoard& operator=(const HostBoard&) = delete;

    std::size_t rank() const { return rank_; }
    std::size_t size() const { return pages_.size(); }
    /// The number of the present step, of which even and odd ones use other places.
    std::uint32_t step() const { return step_; }
    /// Begins a step: waits until all have ended those before.
    void begin(Deadline deadline);
    /// Ends the step: what it has written can now be read.
    void end();
    /// Writes a note in a step. Others read it in the next one.
    void write_note(const std::string& note);
    /// What a process wrote in the step before this one, behind begin().
    std::string note(std::size_t process) const;

    /// Tells the others, whose waits then throw, that this process cannot go on.
    void fail(const std::string& text) noexcept;
    void leave() noexcept;

  private:
    struct Page;
    void close_watched() noexcept;
    Page& page(std::size_t process) const;
    /// Whether this is the process that made it: a forked one must not speak for it.
    bool is_own() const;
    void await(std::size_t process, Deadline deadline) const;
    /// Why nothing is to be expected of the process any more; empty if something is.
    std::string trouble_with(std::size_t process) const;

    const std::size_t rank_;
    const std::vector<std::shared_ptr<std::byte>> pages_;
    const std::vector<int> processes_;
    std::vector<int> watched_;  ///< descriptors of processes; -1 for itself
    std::uint32_t step_ = 0;
    std::atomic<bool> left_{false};
};

}  // namespace dlprim
