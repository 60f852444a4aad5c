// SPDX-License-Identifier: MIT
// SharedHost: which processes of a run are on the same host, memory that these share, and a barrier
// for them in that memory.
//
// Two processes are on one host if the system was started once for both (boot_id). That they reach
// each other's memory is found out by doing it: containers of a host may not let them. Where any
// two of a host do not, no process of this host shares memory.
//
// A barrier carries a message: its number, what it is for, and how many bytes are to be read.
// Processes that do not come for the same end with an error.
//
// Threads: one at a time, except where it says otherwise.
#pragma once

#include "collective/hosts/shared_memory.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class SharedHost {
  public:
    /// A text of each process to all, which waits for all of them.
    using Gather =
        std::function<std::vector<std::string>(const std::string& own, const std::string& what)>;
    /// All processes make one at once. `names` serve messages; `ended` becomes true, by any thread,
    /// when a process of the run was lost, which ends all waits.
    SharedHost(std::size_t rank, std::vector<std::string> names, const Gather& gather,
               std::shared_ptr<const std::atomic<bool>> ended);
    ~SharedHost();
    SharedHost(const SharedHost&) = delete;
    SharedHost& operator=(const SharedHost&) = delete;

    /// For each process the number of its host. Numbers begin with 0 for the first process's.
    const std::vector<std::size_t>& hosts() const { return hosts_; }
    /// Whether each process of the run shares memory with the others of its host, if there are any.
    const std::vector<bool>& shared() const { return shared_; }
    /// Whether this one does.
    bool is_shared() const { return shared_[rank_]; }
    /// Why those of some host do not, where it has several. The same in all processes.
    const std::string& reason() const { return reason_; }
    /// The processes of this host, itself among them.
    const std::vector<std::size_t>& mates() const { return mates_; }
    /// The system's number of one of them, where memory is shared.
    int process_id(std::size_t process) const { return all_.at(process).id; }

    /// More memory of this process: zeros. Throws Error(out_of_memory).
    SharedMemory::Part make(std::uint64_t bytes);
    /// Such memory of a process of this host, after a barrier behind its make(). Both are called in
    /// the same order with the same numbers of bytes. A process maps its own once more.
    SharedMemory::Part reach(std::size_t process, std::uint64_t bytes);

    /// Waits for all processes of the host. What they wrote to shared memory before can then be
    /// read. `meanwhile`, if given, is called every millisecond of the wait. Throws Error(device).
    void meet(const std::string& what, std::uint64_t bytes, std::chrono::duration<double> deadline,
              const std::function<void()>& meanwhile = {});

  private:
    struct Control;
    struct Mate {
        int id = 0;
        std::unique_ptr<SharedMemory> memory;
        SharedMemory::Part control;
    };
    void find_hosts(const std::vector<std::string>& places);
    void agree(const std::vector<std::string>& troubles);
    std::string open_mates(const std::vector<std::string>& places);
    std::string check_answers() const;
    Control& control(std::size_t process) const;
    void await(std::size_t process, const std::string& what, const std::function<void()>& meanwhile,
               std::chrono::duration<double> deadline);
    void compare(std::size_t process) const;

    const std::size_t rank_;
    const std::vector<std::string> names_;
    const std::shared_ptr<const std::atomic<bool>> ended_;
    std::vector<std::size_t> hosts_, mates_;
    std::vector<bool> shared_;
    std::string reason_;
    std::unique_ptr<SharedMemory> own_;  ///< that it makes larger
    std::vector<Mate> all_;  ///< by process; empty for other hosts, and where nothing is shared
    std::uint32_t number_ = 0;
};

}  // namespace dlprim
