// SPDX-License-Identifier: MIT
// Processes: the processes of a run that mpirun, srun or torchrun have started, of which this one
// is a rank with a device of its own. Together they train one network (TrainCall::processes,
// TeamOptions::processes). docs/processes.md describes how to start such runs.
//
// Ownership: a Processes is a handle; copies are of the same connections, which end with the last
// of them.
//
// Threads: one thread at a time.
#pragma once

#include <dlprim/error.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/namespace.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dlprim {

class ProcessGroup;

/// What ended a run of several processes.
struct RunFailure {
    int rank = 0;            ///< of the process that failed first
    std::uint64_t step = 0;  ///< that it was in, from 0
    int exit_code = 1;       ///< that suits all processes of the run
    std::string text;        ///< a sentence that names process, host, step and cause
};

/// The exit code of all processes of a run where a new start from a checkpoint may go better.
constexpr int restart_code = 75;  // EX_TEMPFAIL of sysexits.h
/// The exit code that suits an error: restart_code where a device, memory, disk or connection
/// failed, and else 1.
int exit_code_of(const Error& error);

class Processes {
  public:
    /// This process alone.
    Processes() = default;
    /// Connects the processes of which the environment speaks, and waits until all are there;
    /// alone, where it speaks of none. `deadline_seconds`: how long a process waits for others in
    /// an exchange at most. Throws Error(invalid_argument) where variables are missing or
    /// contradict each other; Error(not_found) and Error(unsupported) where there is no plugin for
    /// the transport, or it does not load; and Error(device) or Error(io) where processes do not
    /// come together.
    static Processes join(double deadline_seconds = 600);

    int rank() const;
    int size() const;
    int local_rank() const;  ///< among the processes of this host
    int local_size() const;
    /// "4 processes by Open MPI, started by mpirun of Open MPI"; empty if alone.
    std::string text() const;

    /// To be called when an Error ends this process's part of the run: tells the others, and
    /// returns what ended the run, which may be another process's failure. `exit_code` is that of
    /// all processes if it is this one's.
    RunFailure failed(const std::string& message, int exit_code);
    /// `call` is called, by a thread of the library, where another process has failed and this one
    /// has not come to its end some seconds later, since it waits for a device, say.
    void on_lost(std::function<void(const RunFailure&)> call);
    /// Waits for the others, and parts from them. To be called at the end of a run that went well.
    void leave();

  private:
    friend class internal::Access;
    const std::shared_ptr<ProcessGroup>& impl() const { return impl_; }
    std::shared_ptr<ProcessGroup> impl_;
};

}  // namespace dlprim
