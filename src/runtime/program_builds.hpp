// SPDX-License-Identifier: MIT
// Programs of many launches, compiled together on several threads.
//
// A plan first makes all of its launches under NotedBuilds, which leaves their programs uncompiled,
// and then compiles each distinct one with compile_together(). Compiling one after the other would
// leave all cores but one idle for most of a cold start.
#pragma once

#include "base/kept_log.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/program.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// A program that may still have to be compiled.
class PendingProgram {
  public:
    virtual ~PendingProgram() = default;
    /// Whether a launch can use it without waiting for a compiler.
    virtual bool compiled() const noexcept = 0;
    /// Compiles it, once. Any thread may call it, also several at once. Throws Error(build).
    virtual void compile_now() const = 0;
    /// What it is compiled from. A longer text takes longer to compile.
    virtual const ProgramSource& text() const noexcept = 0;
    /// hash_of() that text.
    virtual const std::string& text_hash() const = 0;

    /// The device for which another process may compile the text into the binary cache, from which
    /// compile_now() loads it. Null if the cache has it already or is off.
    virtual const CompileTarget* target() const { return nullptr; }
    /// The same without trying functions of the driver (runtime/math_survey.hpp): not null if one
    /// that the text calls is unknown.
    virtual const CompileTarget* ahead_target() const { return target(); }
    /// Tells the program that another process has compiled it. Any thread may call it.
    virtual void compiled_ahead() const noexcept {}
};

using PendingPrograms = std::vector<std::shared_ptr<const PendingProgram>>;

/// BuildsLater that remembers which programs its thread has asked for. Within another one it tells
/// that, too, at its end.
class NotedBuilds {
  public:
    NotedBuilds() : outer_(innermost_) { innermost_ = this; }
    ~NotedBuilds() {
        innermost_ = outer_;
        if (outer_ != nullptr)
            outer_->programs_.insert(outer_->programs_.end(), programs_.begin(), programs_.end());
    }
    NotedBuilds(const NotedBuilds&) = delete;
    NotedBuilds& operator=(const NotedBuilds&) = delete;

    /// The programs in the order in which they were requested. A program that was requested twice
    /// is there twice.
    const PendingPrograms& programs() const noexcept { return programs_; }
    /// A context calls this for each program that it returns.
    static void note(const std::shared_ptr<const PendingProgram>& program) {
        if (innermost_ != nullptr) innermost_->programs_.push_back(program);
    }

  private:
    static thread_local NotedBuilds* innermost_;
    BuildsLater later_;
    NotedBuilds* outer_;
    PendingPrograms programs_;
};

/// For a thread that others wait for. While it lives, the thread's waits are not told to the
/// receiver of set_compile_wait(), and its log lines are kept: whoever waits tells of the wait and
/// passes these on.
class UntoldWaits {
  public:
    UntoldWaits() noexcept { ++depth_; }
    ~UntoldWaits() { --depth_; }
    UntoldWaits(const UntoldWaits&) = delete;
    UntoldWaits& operator=(const UntoldWaits&) = delete;
    static bool active() noexcept { return depth_ > 0; }

  private:
    KeptLog log_;
    inline static thread_local int depth_ = 0;
};

/// Tells the receiver of set_compile_wait() about a wait. Inside the wait of another, of whatever
/// thread, it tells nothing.
class WaitingForCompiler {
  public:
    explicit WaitingForCompiler(int programs);
    ~WaitingForCompiler();
    WaitingForCompiler(const WaitingForCompiler&) = delete;
    WaitingForCompiler& operator=(const WaitingForCompiler&) = delete;

    /// So many are done. Throws what the receiver throws.
    void at(int done) const;

  private:
    bool outermost_;
    int programs_;
};

/// Compiles distinct programs on at most `threads` threads, the longest texts first. The calling
/// thread is one of them. If other processes are faster, they compile instead
/// (runtime/compile_ahead.hpp). Returns for each program the error, or null. If `begins` is not
/// empty, the calling thread calls it before it turns to a program, with the number of programs
/// that are done and the index of that program. What `begins` throws is thrown here, after all
/// threads have stopped.
std::vector<std::exception_ptr> compile_together(
    const PendingPrograms& programs, int threads,
    const std::function<void(std::size_t done, std::size_t next)>& begins = {});

}  // namespace dlprim
