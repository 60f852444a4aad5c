// SPDX-License-Identifier: MIT
// HostPool: persistent workers that share one loop at a time with its caller.
#include "runtime/host_pool.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <sched.h>

namespace dlprim {
namespace {

int default_threads() {
    if (const auto text = env("DLPRIM_THREADS")) {
        int value = 0;
        const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
        require(error == std::errc() && end == text->data() + text->size() && value >= 1 &&
                    value <= 1024,
                "DLPRIM_THREADS must be a number from 1 to 1024, not '", *text, "'");
        return value;
    }
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

thread_local bool inside_body = false;

// Pieces per thread: enough that one slow thread does not delay the rest.
constexpr std::int64_t pieces_per_thread = 4;
// A thread spins for about ten microseconds before it sleeps.
constexpr int spins = 400;

}  // namespace

struct HostPool::Impl {
    using Body = std::function<void(std::int64_t, std::int64_t)>;

    explicit Impl(int thread_count) : threads(thread_count) {}

    int threads;
    std::vector<std::thread> workers;
    std::mutex callers;  // one loop at a time

    std::mutex mutex;
    std::condition_variable wake;
    std::condition_variable finished;
    std::atomic<std::uint64_t> round{0};
    std::atomic<int> active{0};  // workers that have joined this round and not left it
    bool open = false;           // whether workers may still join this round
    bool stop = false;

    const Body* body = nullptr;
    std::int64_t count = 0;
    std::int64_t pieces = 0;
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error;

    void work() {
        inside_body = true;
        for (;;) {
            const std::int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
            if (piece >= pieces || failed.load(std::memory_order_relaxed)) break;
            const std::int64_t size = count / pieces, rest = count % pieces;
            const std::int64_t begin = piece * size + std::min(piece, rest);
            const std::int64_t end = begin + size + (piece < rest ? 1 : 0);
            try {
                (*body)(begin, end);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!error) error = std::current_exception();
                failed = true;
            }
        }
        inside_body = false;
    }

    void run_worker() {
        std::uint64_t seen = 0;
        for (;;) {
            for (int i = 0; i < spins && round.load(std::memory_order_acquire) == seen; ++i)
                relax();
            {
                std::unique_lock lock(mutex);
                wake.wait(lock, [&] { return stop || round.load() != seen; });
                if (stop) return;
                seen = round.load();
                // The worker woke after the caller had finished the round alone, and nobody waits
                // for it.
                if (!open) continue;
                active.fetch_add(1, std::memory_order_relaxed);
            }
            work();
            if (active.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                const std::lock_guard lock(mutex);
                finished.notify_one();
            }
        }
    }
};

HostPool::HostPool(int threads)
    : impl_(std::make_unique<Impl>(threads > 0 ? threads : default_threads())) {
    try {
        for (int i = 1; i < impl_->threads; ++i)
            impl_->workers.emplace_back([impl = impl_.get()] { impl->run_worker(); });
    } catch (const std::system_error&) {
        // There are fewer threads than requested, but the loop still covers every piece.
        impl_->threads = static_cast<int>(impl_->workers.size()) + 1;
    }
}

HostPool::~HostPool() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stop = true;
    }
    impl_->wake.notify_all();
    for (std::thread& worker : impl_->workers) worker.join();
}

int HostPool::threads() const noexcept {
    return impl_->threads;
}

void HostPool::parallel_for(std::int64_t count, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& body) {
    if (count <= 0) return;
    Impl& impl = *impl_;
    const std::int64_t pieces =
        std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1,
                                 impl.threads == 1 ? 1 : impl.threads * pieces_per_thread);
    if (pieces == 1 || inside_body) {
        body(0, count);
        return;
    }
    const std::lock_guard one_caller(impl.callers);
    {
        const std::lock_guard lock(impl.mutex);
        impl.body = &body;
        impl.count = count;
        impl.pieces = pieces;
        impl.next = 0;
        impl.failed = false;
        impl.error = nullptr;
        impl.open = true;
        impl.round.fetch_add(1, std::memory_order_release);
    }
    impl.wake.notify_all();
    impl.work();
    {
        const std::lock_guard lock(impl.mutex);
        impl.open = false;
    }
    for (int i = 0; i < spins && impl.active.load(std::memory_order_acquire) != 0; ++i) relax();
    {
        std::unique_lock lock(impl.mutex);
        impl.finished.wait(lock, [&] { return impl.active.load() == 0; });
    }
    if (impl.error) {
        std::exception_ptr error;
        std::swap(error, impl.error);
        std::rethrow_exception(error);
    }
}

}  // namespace dlprim
