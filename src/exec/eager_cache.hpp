// SPDX-License-Identifier: MIT
// EagerCache: the plans of eager calls, by problem, so that a repeated call only looks up a plan,
// binds memory and enqueues.
#pragma once

#include "base/lru_map.hpp"
#include "exec/copy_launches.hpp"
#include "exec/eager_entry.hpp"
#include "exec/eager_weights.hpp"
#include "runtime/deferred.hpp"
#include "runtime/put_off_calls.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace dlprim {

/// The eager calls of one context. They share scratch memory, because the queue is in order and
/// each call of a thread is enqueued as a whole. Executors have inner() handles of the context,
/// which owns this cache.
struct EagerCache : ContextImpl::Attachment {
    EagerCache() = default;
    EagerCache(const EagerCache&) = delete;
    EagerCache& operator=(const EagerCache&) = delete;
    /// Calls that are put off use the members.
    ~EagerCache() override {
        if (later != nullptr) later->settle();
    }
    static constexpr std::size_t most_kept = 4096;

    /// Protects the members below and the executors in them. While it is held, no Deferred may be
    /// asked for its memory, because that may start a conversion, which locks this mutex.
    std::mutex mutex;
    /// Entries by problem. If a plan keeps data derived from its parameters (packed weights), the
    /// entry belongs to those parameters, so that layers of the same shape do not replace each
    /// other's data. Its key is then the problem with the parameters, and the entry of the problem
    /// alone is null. Parameters that change all the time share an entry that keeps no such data.
    LruMap<std::shared_ptr<EagerEntry>> entries{most_kept};
    WeightUses weights{most_kept};
    LruMap<std::shared_ptr<PlannedCall>> conversions{most_kept};  ///< of results to plain
    CopyLaunches copies;                                          ///< of strided views
    BlockStore store;
    /// Where calls are put off whose programs are being compiled. They use plans, copies and store
    /// without the mutex. So whoever holds it touches these only while nothing is put off.
    PutOffCalls* later = nullptr;
    MovedResults moved;                              ///< of calls that were put off
    bool may_put_off = false;                        ///< whether the present call may be put off
    std::unique_ptr<ContextImpl::Attachment> extra;  ///< of eager_extra()
    std::string key;                                 ///< the key of the current call
};

EagerCache& cache_of(const Context& context);

// The caller of these holds the cache's mutex.

/// Looks where calls may be put off now.
void find_later(EagerCache& cache, const Context& context);
/// Has the present call wait for all that are put off, and for its programs.
void call_at_once(EagerCache& cache);
/// Whether a call waits for others, or for its programs. Otherwise its plan is finished.
bool is_put_off(EagerCache& cache, const Context& context, PlannedCall& call);
/// The entry of a call, which is planned where there is none.
std::shared_ptr<EagerEntry> find_entry(EagerCache& cache, const Context& context,
                                       const EagerCall& call,
                                       std::span<const EagerOperand> operands);

// These take it themselves.

/// Drops the entries of a call, of which an engine has failed.
void forget_entry(const Context& context, const EagerCall& call,
                  std::span<const EagerOperand> operands);
/// Converts a result of an eager call to plain.
void convert_result(const Deferred& from, const std::shared_ptr<Buffer>& contents,
                    const std::shared_ptr<Buffer>& plain);

/// Releases the memory that an executor was given for a call, also if the call fails.
class BoundMemory {
  public:
    explicit BoundMemory(Executor& executor) : executor_(executor) {}
    BoundMemory(const BoundMemory&) = delete;
    BoundMemory& operator=(const BoundMemory&) = delete;
    ~BoundMemory() { executor_.release_bindings(); }

  private:
    Executor& executor_;
};

}  // namespace dlprim
