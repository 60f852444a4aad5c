// SPDX-License-Identifier: MIT
// Cluster.
#include "simulation/exchange.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dlprim::simulation {

namespace {

/// Parts of a tensor begin at multiples of so many elements in the real exchange.
constexpr int grain = 1024;

}  // namespace

Cluster::Cluster(Description description)
    : what_(std::move(description)), places_(static_cast<std::size_t>(what_.devices)) {
    make_stages();
    std::vector<std::size_t> sizes;
    for (const Stage& stage : stages_) sizes.push_back(static_cast<std::size_t>(stage.count));
    std::vector<ShardRange> parts;
    for (int rank = 0; rank < what_.devices; ++rank) parts.push_back(shards_of(rank));
    if (!sizes.empty())
        plan_ = std::make_unique<LevelPlan>(LevelPlan::groups_of(sizes), what_.shards, parts);
    traffic_.resize(stages_.size());
}

void Cluster::make_stages() {
    if (what_.direct) {
        stages_.push_back({Way::transport, what_.devices, 1, "all"});
        return;
    }
    int stride = 1;
    for (const Level& level : what_.levels) {
        const int left = what_.devices / stride, count = std::min(level.count, left);
        if (count < 2) break;
        if (what_.devices % (stride * count) != 0)
            throw std::runtime_error("devices must fill the members of each level alike");
        stages_.push_back({level.way, count, stride, level.name});
        stride *= count;
    }
    if (stride != what_.devices)
        throw std::runtime_error("devices must fill the members of each level alike");
    for (std::size_t i = 1; i < stages_.size(); ++i)
        if (stages_[i].way != Way::transport)
            throw std::runtime_error("only devices of the first level share memory");
}

ShardRange Cluster::shards_of(int rank) const {
    const int each = what_.shards / what_.devices;
    return {rank * each, each};
}

const LevelPlan::Division& Cluster::division(std::int64_t elements) {
    std::unique_ptr<LevelPlan::Division>& made = divisions_[elements];
    if (!made)
        made = std::make_unique<LevelPlan::Division>(*plan_, elements,
                                                     std::max(1, grain / what_.fold));
    return *made;
}

}  // namespace dlprim::simulation
