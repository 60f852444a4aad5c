// SPDX-License-Identifier: MIT
// PutOffCalls: calls whose programs are being compiled, in order, and the thread that makes them.
//
// Where a driver compiles one program at a time in a process, and an eager call needs a program
// that is not compiled, its caller does not wait. The program goes to other processes
// (runtime/background_compiles.hpp), the call is put off until it is compiled, and the caller goes
// on to the next call, whose programs are then compiled at the same time. While a call is put off,
// all that follow it are put off, too. Whoever needs the driver's queue calls settle() first.
//
//     caller ──┬─ programs ──> dlprim_compile, dlprim_compile, ...
//              └─ calls ─────> thread: waits for the programs, checks engines, enqueues
//
// What a call needs (memory, numbers, its plan) belongs to its record. What fails is thrown by the
// next call that waits, with the operator's name.
#pragma once

#include "runtime/background_compiles.hpp"
#include "runtime/queue.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace dlprim {

/// Any thread may call any member.
class PutOffCalls {
  public:
    explicit PutOffCalls(CompileCrew crew) : compiles_(std::move(crew)) {}
    /// Makes the calls that are left.
    ~PutOffCalls();
    PutOffCalls(const PutOffCalls&) = delete;
    PutOffCalls& operator=(const PutOffCalls&) = delete;

    /// Has processes compile programs that a call to come needs. Does not wait.
    void compile(const PendingPrograms& programs) { compiles_.add(programs); }
    BackgroundCompiles& compiles() noexcept { return compiles_; }
    /// Puts `call` off until processes are done with `programs`. `owner`: whose call it is, for
    /// errors, beside what set_call_names() says.
    void push(std::string owner, PendingPrograms programs, std::function<void()> call);
    /// Whether a call is put off. It stays false only while nobody pushes.
    bool any() const noexcept { return made_.load() != pushed_.load(); }
    /// Whether the calling thread makes such calls now.
    bool is_own_thread() const noexcept { return own_ == this; }

    /// Waits until all calls that were pushed before are made and their records destroyed. Returns
    /// at once on the thread that makes them.
    void settle() noexcept;
    /// The same for callers that may be interrupted: tells the receiver of set_compile_wait(), and
    /// throws what that throws. The calls stay put off then.
    void wait();
    /// Throws the first error of a call since the last rethrow(), if there is one.
    void rethrow();

  private:
    struct Record {
        std::string owner;   ///< an operator's type
        std::string caller;  ///< call_name()
        PendingPrograms programs;
        std::function<void()> call;
    };
    void work();
    void make(Record& record) noexcept;
    void keep(std::exception_ptr error) noexcept;

    BackgroundCompiles compiles_;
    std::mutex mutex_;  ///< protects the records, the error and the thread
    std::condition_variable pushed_one_, made_one_;
    std::deque<Record> records_;
    std::atomic<std::uint64_t> pushed_{0}, made_{0};
    std::exception_ptr error_;
    std::atomic<bool> failed_{false};
    bool stop_ = false;
    std::thread thread_;
    inline static thread_local const PutOffCalls* own_ = nullptr;  ///< whose thread this is
};

/// The put-off calls of a queue, or nullptr where calls wait for their programs: where the driver
/// compiles several programs at a time, no process can compile for this one, or the queue is timed
/// or shared with others.
PutOffCalls* put_off_calls(Queue& queue);
/// Puts `call` off if others are put off on the queue. Returns false if none is, or on the thread
/// that makes them: then the caller makes it.
template <typename Call>
bool put_off_after_others(Queue& queue, const char* owner, const Call& call) {
    PutOffCalls* const calls = put_off_calls(queue);
    if (calls == nullptr || calls->is_own_thread() || !calls->any()) return false;
    calls->push(owner, {}, call);
    return true;
}
/// Waits until nothing is put off on the queue. For what asks for its state without enqueueing.
void settle_calls(Queue& queue) noexcept;

}  // namespace dlprim
