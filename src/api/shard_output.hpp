// SPDX-License-Identifier: MIT
// ShardOutput: an output of a network that computes the shards of a batch one after the other, put
// together: it has the rows of all shards, in their order.
#pragma once

#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/tensor.hpp>

#include <cstdint>
#include <string>

namespace dlprim {

class ShardOutput {
  public:
    /// `of_shard` is the output of a shard, for so many of which there is memory then, on its
    /// device. Throws Error(invalid_argument) for an output without rows; `name` is its name.
    ShardOutput(const std::string& name, const Tensor& of_shard, int shards) {
        const Shape& shape = of_shard.shape();
        require(shape.rank() > 0, "output '", name,
                "' is one number, and shards are judged together: it needs a row for each example");
        whole_ = Tensor(of_shard.context(), shape.with(0, shape[0] * shards), of_shard.dtype());
    }

    /// Enqueues a copy of a shard's output to its place, by the index among these shards.
    void keep(const Tensor& of_shard, int index) const {
        const std::uint64_t bytes = of_shard.bytes();
        Access::impl(whole_.context())
            .queue()
            .copy({Access::buffer(of_shard).get(), of_shard.byte_offset()},
                  {Access::buffer(whole_).get(),
                   whole_.byte_offset() + bytes * static_cast<std::uint64_t>(index)},
                  bytes);
    }

    const Tensor& whole() const { return whole_; }

  private:
    Tensor whole_;
};

}  // namespace dlprim
