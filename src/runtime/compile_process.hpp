// SPDX-License-Identifier: MIT
// CompileProcess: a child process that compiles programs for this one. It is for drivers that
// compile one program at a time in each process. runtime/compile_server.hpp is the child's side.
//
// If the child cannot be started, crashes or hangs, that costs time and nothing else: the program
// is not in the binary cache then, and this process compiles it itself.
#pragma once

#include "runtime/compile_messages.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/program.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>

#include <sys/types.h>

namespace dlprim {

/// One thread at a time may use it.
class CompileProcess {
  public:
    /// A child that takes longer than this is considered hung.
    struct Patience {
        std::chrono::milliseconds start{30'000};
        std::chrono::milliseconds program{60'000};
    };

    /// Starts `executable` for `target` and does not wait for it. When `stop` becomes true, calls
    /// that wait return within milliseconds. `stop` must outlive this object.
    CompileProcess(const std::filesystem::path& executable, const CompileTarget& target,
                   const std::atomic<bool>& stop, const Patience& patience);
    /// Ends the child and reaps it.
    ~CompileProcess();
    CompileProcess(const CompileProcess&) = delete;
    CompileProcess& operator=(const CompileProcess&) = delete;

    /// Waits until the child has opened the device. Returns false if it cannot.
    bool ready();

    enum class Result {
        made,      ///< the binary cache has the program
        failed,    ///< the program does not build there
        not_kept,  ///< it builds, but the child cannot keep it in the cache
        lost,      ///< the child is gone or hangs
    };
    /// Has the child compile a program, and waits for it. Call it after ready(). `launches`:
    /// expected_launches() of the program.
    Result compile(const ProgramSource& source, const std::string& launches = {});

    /// The child's id, or -1 if it was not started.
    pid_t process() const noexcept { return process_; }

  private:
    bool ended_within(std::chrono::milliseconds time);

    const std::atomic<bool>& stop_;
    const Patience patience_;
    MessageSocket socket_{-1};
    pid_t process_ = -1;
    bool lost_ = false;
};

}  // namespace dlprim
