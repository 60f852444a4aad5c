// SPDX-License-Identifier: MIT
// LaunchThread: a ring of records, written under a mutex and carried out by one thread.
#include "runtime/launch_thread.hpp"

#include "base/text.hpp"
#include "runtime/opencl_program.hpp"
#include "runtime/without_signals.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace dlprim {
namespace {

constexpr std::size_t most_records = 4096;  // a power of two
/// Launches after which the device gets them, though more follow.
constexpr std::uint64_t flush_after = 8;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

/// Waits while `value` is `old`: for a short while without the system, since the next record
/// usually follows within microseconds and waking a thread takes longer.
void wait_while(const std::atomic<std::uint64_t>& value, std::uint64_t old) noexcept {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::microseconds(50);
    do {
        for (int i = 0; i < 64; ++i) {
            if (value.load(std::memory_order_acquire) != old) return;
            pause_briefly();
        }
    } while (Clock::now() < end);
    value.wait(old);
}

}  // namespace

thread_local std::string_view LaunchesLater::owner_;

LaunchThread::LaunchThread(cl_command_queue queue) : queue_(queue), ring_(most_records) {
    thread_ = without_signals([this] { work(); });
}

LaunchThread::~LaunchThread() {
    push(Kind::stop, [](Record&) {});
    thread_.join();
}

template <typename Fill>
void LaunchThread::push(Kind kind, const Fill& fill_in) {
    const std::lock_guard lock(push_mutex_);
    const std::uint64_t number = pushed_.load(std::memory_order_relaxed);
    std::uint64_t done = done_.load(std::memory_order_acquire);
    while (number - done >= most_records) {
        wait_while(done_, done);
        done = done_.load(std::memory_order_acquire);
    }
    Record& record = ring_[number % most_records];
    record.kind = kind;
    record.owner = LaunchesLater::owner();
    fill_in(record);
    pushed_.store(number + 1);
    pushed_.notify_one();
}

void LaunchThread::launch(OpenCLKernel& kernel, const PartRange& range) {
    kernel.compile();
    push(Kind::launch, [&](Record& record) {
        record.kernel = &kernel;
        record.range = range;
        kernel.record(record.bytes);
    });
}

void LaunchThread::fill(cl_mem to, std::uint64_t offset, std::uint64_t bytes, const void* pattern,
                        std::size_t pattern_bytes) {
    push(Kind::fill, [&](Record& record) {
        const auto* const begin = static_cast<const std::byte*>(pattern);
        record.bytes.assign(begin, begin + pattern_bytes);
        record.to = to;
        record.to_offset = offset;
        record.size = bytes;
    });
}

void LaunchThread::copy(cl_mem from, std::uint64_t from_offset, cl_mem to, std::uint64_t to_offset,
                        std::uint64_t bytes) {
    push(Kind::copy, [&](Record& record) {
        record.from = from;
        record.from_offset = from_offset;
        record.to = to;
        record.to_offset = to_offset;
        record.size = bytes;
    });
}

void LaunchThread::flush() {
    push(Kind::flush, [](Record&) {});
}

void LaunchThread::release(cl_mem memory) {
    if (done_.load(std::memory_order_acquire) == pushed_.load()) {
        clReleaseMemObject(memory);
        return;
    }
    push(Kind::release, [&](Record& record) { record.to = memory; });
}

void LaunchThread::settle() noexcept {
    const std::uint64_t wanted = pushed_.load();
    for (;;) {
        const std::uint64_t done = done_.load(std::memory_order_acquire);
        if (done >= wanted) return;
        wait_while(done_, done);
    }
}

void LaunchThread::rethrow() {
    if (!failed_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(error_mutex_);
    failed_ = false;
    if (std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void LaunchThread::keep(const Error& error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::make_exception_ptr(error);
    failed_.store(true, std::memory_order_release);
}

void LaunchThread::work() {
    for (std::uint64_t next = 0;; ++next) {
        while (pushed_.load(std::memory_order_acquire) == next) wait_while(pushed_, next);
        Record& record = ring_[next % most_records];
        const bool stops = record.kind == Kind::stop;
        try {
            carry_out(record);
            if (flush_wanted_ && pushed_.load(std::memory_order_acquire) == next + 1) flush_now();
        } catch (const Error& error) {
            keep(Error(error.kind(), cat('[', record.owner, "] ", error.what())));
        } catch (const std::exception& error) {
            keep(Error(ErrorKind::device, cat('[', record.owner, "] ", error.what())));
        }
        done_.store(next + 1);
        done_.notify_all();
        if (stops) return;
    }
}

void LaunchThread::carry_out(Record& record) {
    switch (record.kind) {
        case Kind::launch:
            ++launches_;
            record.kernel->launch_recorded(queue_, record.range, record.bytes);
            ++unflushed_;
            break;
        case Kind::fill:
            cl_check(
                clEnqueueFillBuffer(queue_, record.to, record.bytes.data(), record.bytes.size(),
                                    record.to_offset, record.size, 0, nullptr, nullptr),
                "filling ", record.size, " bytes on the device");
            break;
        case Kind::copy:
            cl_check(clEnqueueCopyBuffer(queue_, record.from, record.to, record.from_offset,
                                         record.to_offset, record.size, 0, nullptr, nullptr),
                     "copying ", record.size, " bytes on the device");
            break;
        case Kind::flush:
            flush_wanted_ = true;
            if (unflushed_ >= flush_after) flush_now();
            break;
        case Kind::release:
            clReleaseMemObject(record.to);
            break;
        case Kind::stop:
            break;
    }
}

void LaunchThread::flush_now() {
    flush_wanted_ = false;
    unflushed_ = 0;
    ++flushes_;
    cl_check(clFlush(queue_), "flushing the queue");
}

}  // namespace dlprim
