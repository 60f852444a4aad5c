// SPDX-License-Identifier: MIT
// What both kinds of context share: limits on memory, messages, and the pool from which tensors and
// eager calls take memory.
#pragma once

#include "runtime/block_pool.hpp"
#include "runtime/context_impl.hpp"

#include <atomic>

namespace dlprim {

/// Bytes in use now and at most. Threads may change it at the same time.
class Gauge {
  public:
    void add(std::uint64_t bytes) noexcept;
    void remove(std::uint64_t bytes) noexcept { now_.fetch_sub(bytes, std::memory_order_relaxed); }
    std::uint64_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
    std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
    void reset_peak() noexcept { peak_.store(now(), std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> now_{0}, peak_{0};
};

/// Whether a buffer from ContextImpl::allocate(), which nothing has been written to, is known to
/// hold zeros. Memory in large pages does (runtime/huge_pages.hpp): the system clears such a page
/// when it is first touched. To fill it with zeros would touch all of it on one thread.
bool is_new_zeros(const Buffer& buffer) noexcept;

/// A ContextImpl whose memory is made by make_buffer().
class PooledContext : public ContextImpl, public std::enable_shared_from_this<PooledContext> {
  public:
    std::shared_ptr<Buffer> allocate(std::uint64_t bytes) override;
    std::shared_ptr<Buffer> allocate_cached(std::uint64_t bytes) override;
    std::uint64_t trim() override;
    MemoryUse memory() override;
    void reset_memory_peaks() override;
    HostPool& pool() override;
    std::shared_ptr<ContextImpl> self() override { return shared_from_this(); }

  protected:
    /// A buffer of `bytes` > 0 which counts its bytes in reserved(), or nothing if there is not
    /// enough memory.
    virtual std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) = 0;
    /// Whether a program holds the memory behind a buffer by a reference of its own.
    virtual bool held_elsewhere(const Buffer& memory) = 0;
    /// Waits for all work, so that drivers free what was released. Throws nothing.
    virtual void drain() noexcept = 0;

    Gauge& reserved() noexcept { return reserved_; }
    /// For destructors: destroys the pool while the device is open.
    void destroy_pool();

  private:
    friend class PooledBuffer;
    void started(std::uint64_t bytes) noexcept;
    void ended(std::uint64_t bytes) noexcept;
    void give_back(BlockPool::Block* block, std::uint64_t bytes, bool exported);
    BlockPool& blocks();
    bool fits(std::uint64_t bytes) const noexcept;
    std::unique_ptr<Buffer> try_buffer(std::uint64_t bytes);
    BlockPool::Block* new_segment(std::uint64_t block_bytes, bool sparing);
    void take_back_exported();
    [[noreturn]] void refuse(std::uint64_t bytes, std::uint64_t cached, const char* why);

    Gauge live_, reserved_;
    std::once_flag pool_made_;
    std::unique_ptr<BlockPool> pool_;
    /// Blocks that no buffer uses, but whose memory the program may hold (opencl::memory()).
    std::mutex exported_mutex_;
    std::vector<BlockPool::Block*> exported_;
    std::atomic<bool> any_exported_{false};
};

}  // namespace dlprim
