// SPDX-License-Identifier: MIT
// ShardInputs.
#include "api/placement/shard_inputs.hpp"

#include "runtime/context_impl.hpp"

namespace dlprim {

std::shared_ptr<std::vector<std::byte>> ShardInputs::unused(const std::string& name) {
    auto& all = memory_[name];
    for (const auto& each : all)
        if (each.use_count() == 1) return each;
    return all.emplace_back(std::make_shared<std::vector<std::byte>>());
}

void ShardInputs::set(const std::string& name, const void* data, std::uint64_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    Data& next = next_[name];
    next.bytes.reset();
    next.bytes = unused(name);
    next.bytes->assign(first, first + bytes);
    next.version = ++versions_;
}

void ShardInputs::add_target(const Tensor& tensor) {
    Target& target = targets_[Access::buffer(tensor).get()];
    if (!target.feed)
        target.feed = Access::impl(tensor.context())
                          .make_feed(Access::buffer(tensor), tensor.byte_offset(), tensor.bytes());
}

void ShardInputs::write(const Shard& shard, const std::string& name, const Tensor& tensor) {
    const auto found = shard.find(name);
    if (found == shard.end()) return;
    const auto target = targets_.find(Access::buffer(tensor).get());
    if (target == targets_.end() || target->second.version == found->second.version) return;
    target->second.feed->write(found->second.bytes->data());
    target->second.version = found->second.version;
}

}  // namespace dlprim
