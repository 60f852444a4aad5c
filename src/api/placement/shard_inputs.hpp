// SPDX-License-Identifier: MIT
// ShardInputs: inputs of a network that computes several shards at once. What is fed stays in host
// memory until a device begins with the shard, and goes to each device that reads it from there.
#pragma once

#include "runtime/buffer.hpp"
#include "runtime/transfer.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class ShardInputs {
  public:
    /// Data that were fed. The version tells them from all others.
    struct Data {
        std::shared_ptr<std::vector<std::byte>> bytes;
        std::uint64_t version = 0;
    };
    using Shard = std::map<std::string, Data>;  ///< by input

    /// Copies data for the next shard and those after it.
    void set(const std::string& name, const void* data, std::uint64_t bytes);
    const Shard& next() const { return next_; }

    /// Makes a tensor known, for write().
    void add_target(const Tensor& tensor);
    void forget_targets() { targets_.clear(); }
    /// Enqueues a copy of the shard's data to a tensor, unless that holds them or is no target.
    /// Each context has one thread at a time; several may write at once.
    void write(const Shard& shard, const std::string& name, const Tensor& tensor);

  private:
    struct Target {
        std::unique_ptr<InputFeed> feed;
        std::uint64_t version = 0;  ///< of what it holds; 0: nothing that was fed
    };
    std::shared_ptr<std::vector<std::byte>> unused(const std::string& name);

    Shard next_;
    std::uint64_t versions_ = 0;
    /// Memory by input, which is taken again when no shard needs it any more.
    std::map<std::string, std::vector<std::shared_ptr<std::vector<std::byte>>>> memory_;
    std::map<const Buffer*, Target> targets_;
};

}  // namespace dlprim
