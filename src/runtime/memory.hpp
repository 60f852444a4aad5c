// SPDX-License-Identifier: MIT
// What both kinds of context share: limits on memory, messages, and a pool of freed buffers.
#pragma once

#include "runtime/buffer_pool.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

/// A ContextImpl whose memory is made by make_buffer().
class PooledContext : public ContextImpl, public std::enable_shared_from_this<PooledContext> {
  public:
    std::shared_ptr<Buffer> allocate(std::uint64_t bytes) override;
    std::shared_ptr<Buffer> allocate_cached(std::uint64_t bytes) override;
    void trim() override;
    HostPool& pool() override;
    std::shared_ptr<ContextImpl> self() override { return shared_from_this(); }

  protected:
    /// A buffer of `bytes` > 0, or nothing if there is not enough memory.
    virtual std::unique_ptr<Buffer> make_buffer(std::uint64_t bytes) = 0;

  private:
    std::unique_ptr<Buffer> checked(std::uint64_t bytes);

  protected:
    BufferPool kept_;
};

}  // namespace dlprim
