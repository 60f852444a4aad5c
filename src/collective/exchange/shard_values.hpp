// SPDX-License-Identifier: MIT
// ShardValues: small values that the ranks of a team, each with one shard of the batch, give each
// other in the middle of a step: in the memory of the process, and among processes as
// PieceExchange gives pieces.
#pragma once

#include "collective/devices/barrier.hpp"
#include "collective/exchange/piece_exchange.hpp"
#include "collective/processes/process_group.hpp"
#include "runtime/shard_meeting.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class ShardValues {
  public:
    /// The ranks of this process are those of the barrier, whose lane Barrier::middle it uses. With
    /// a group, `counts` says how many ranks each process has, `levels` are Exchange's
    /// process_levels(), and nothing else may use the group meanwhile.
    explicit ShardValues(std::shared_ptr<Barrier> barrier, std::shared_ptr<ProcessGroup> group = {},
                         std::vector<std::size_t> counts = {},
                         const std::vector<LevelPlan::Groups>& levels = {});

    /// For the thread of one rank of this process.
    std::unique_ptr<ShardMeeting> meeting(std::size_t rank) const;

  private:
    struct State;
    class OfRank;
    std::shared_ptr<State> state_;
};

}  // namespace dlprim
