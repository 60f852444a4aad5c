// SPDX-License-Identifier: MIT
// PutOffCalls: a list of records and one thread.
#include "runtime/put_off_calls.hpp"

#include "base/call_name.hpp"
#include "base/text.hpp"
#include "runtime/refusals.hpp"
#include "runtime/without_signals.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dlprim {

PutOffCalls::~PutOffCalls() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    pushed_one_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void PutOffCalls::push(std::string owner, PendingPrograms programs, std::function<void()> call) {
    std::string caller = call_name();
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = without_signals([this] { work(); });
    records_.push_back({std::move(owner), std::move(caller), std::move(programs), std::move(call)});
    ++pushed_;
    pushed_one_.notify_one();
}

void PutOffCalls::settle() noexcept {
    if (is_own_thread() || !any()) return;
    const std::uint64_t wanted = pushed_;
    std::unique_lock lock(mutex_);
    made_one_.wait(lock, [&] { return made_ >= wanted; });
}

void PutOffCalls::wait() {
    if (is_own_thread() || !any()) return;
    const std::uint64_t wanted = pushed_;
    const auto programs = static_cast<int>(compiles_.unfinished());
    const WaitingForCompiler waiting(programs);
    std::unique_lock lock(mutex_);
    const auto all_made = [&] { return made_ >= wanted; };
    while (!made_one_.wait_for(lock, std::chrono::milliseconds(100), all_made)) {
        lock.unlock();
        waiting.at(std::max(0, programs - static_cast<int>(compiles_.unfinished())));
        lock.lock();
    }
}

void PutOffCalls::rethrow() {
    pass_kept_log();
    if (!failed_) return;
    const std::lock_guard lock(mutex_);
    failed_ = false;
    if (std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void PutOffCalls::keep(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
}

void PutOffCalls::work() {
    own_ = this;
    const UntoldWaits untold;  // whoever waits for this thread tells of it
    std::unique_lock lock(mutex_);
    for (;;) {
        pushed_one_.wait(lock, [this] { return stop_ || !records_.empty(); });
        if (records_.empty()) return;
        {
            Record record = std::move(records_.front());
            records_.pop_front();
            lock.unlock();
            make(record);
        }
        lock.lock();
        ++made_;
        made_one_.notify_all();
    }
}

void PutOffCalls::make(Record& record) noexcept {
    const LogOfCall log(record.caller);
    try {
        compiles_.wait_for(record.programs);
        record.call();
    } catch (const RefusedIndex&) {
        keep(std::current_exception());
    } catch (const Error& error) {
        keep(std::make_exception_ptr(Error(
            error.kind(), of_call(record.caller, cat('[', record.owner, "] ", error.what())))));
    } catch (...) {
        keep(std::current_exception());
    }
}

}  // namespace dlprim
