// SPDX-License-Identifier: MIT
// The lock that serialises calls on a context's nets, and what is refused after fork().
//
// A child of fork() has none of its parent's threads, neither a driver's nor the host pool's, so
// calls on objects that the parent opened could wait forever. A record per context states which
// process opened it. Handlers of pthread_atfork count the forks that led to this process, and keep
// the mutex of the records free in the child.
#include "bind.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include <pthread.h>

namespace dlprim::python {
namespace {

constexpr const char* way_out =
    "; start processes by multiprocessing's \"spawn\" or \"forkserver\", or open devices in the "
    "child alone";

struct Record {
    std::recursive_mutex mutex;
    unsigned forks = 0;  ///< forks before the process that opened the context
};

struct Records {
    std::mutex mutex;
    /// By address. Entries are never removed, since a record is small and contexts are few.
    std::map<const void*, std::unique_ptr<Record>> contexts;
    std::atomic<unsigned> forks{0};  ///< forks before this process
    bool opencl_asked = false;
    unsigned opencl_forks = 0;  ///< forks before the process that used OpenCL first
};

// Never destroyed, because tensors may outlive all static objects.
Records& records() {
    static Records* const instance = [] {
        auto* made = new Records;
        pthread_atfork([] { records().mutex.lock(); }, [] { records().mutex.unlock(); },
                       [] {
                           ++records().forks;
                           records().mutex.unlock();
                       });
        return made;
    }();
    return *instance;
}

/// The mutex of a context that this process opened.
std::recursive_mutex& mutex_of(const Context& context) {
    Records& all = records();
    const std::lock_guard<std::mutex> lock(all.mutex);
    auto& record = all.contexts[context.identity()];
    if (!record) record = std::make_unique<Record>();
    if (record->forks != all.forks)
        throw Error(ErrorKind::device, "device " + context.info().str() +
                                           " was opened before this process was forked and "
                                           "cannot be used by the child" +
                                           way_out);
    return record->mutex;
}

}  // namespace

ContextLock::ContextLock(const Context& context) : lock_(mutex_of(context)) {}

ContextLock::ContextLock(const Context& context, std::try_to_lock_t)
    : lock_(mutex_of(context), std::try_to_lock) {}

ContextLock::ContextLock(const std::vector<Context>& contexts) {
    if (contexts.size() == 1) {
        lock_ = Lock(mutex_of(contexts.front()));
        return;
    }
    std::vector<std::recursive_mutex*> mutexes;
    mutexes.reserve(contexts.size());
    for (const Context& context : contexts) mutexes.push_back(&mutex_of(context));
    std::sort(mutexes.begin(), mutexes.end(), std::less<>());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (std::recursive_mutex* const mutex : mutexes) others_.emplace_back(*mutex);
}

ContextLock::~ContextLock() = default;

void enter_context_lock(const Context& context) {
    const GilRelease release;
    mutex_of(context).lock();
}

void leave_context_lock(const Context& context) {
    mutex_of(context).unlock();
}

void register_context(const Context& context) {
    Records& all = records();
    const std::lock_guard<std::mutex> lock(all.mutex);
    auto& record = all.contexts[context.identity()];
    // A mutex that the parent left at this address may be locked.
    if (!record || record->forks != all.forks) record = std::make_unique<Record>();
    record->forks = all.forks;
}

void check_opencl_after_fork() {
    Records& all = records();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (!all.opencl_asked) all.opencl_forks = all.forks;
    all.opencl_asked = true;
    if (all.opencl_forks != all.forks)
        throw Error(ErrorKind::device,
                    std::string("OpenCL was used before this process was forked and cannot be used "
                                "by the child, which has device cpu (the host) alone") +
                        way_out);
}

}  // namespace dlprim::python
