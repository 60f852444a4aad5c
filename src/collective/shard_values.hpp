// SPDX-License-Identifier: MIT
// ShardValues: small values that the ranks of a team, each with one shard of the batch, give each
// other in the middle of a step. In the memory of the process.
#pragma once

#include "collective/barrier.hpp"
#include "runtime/shard_meeting.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class ShardValues {
  public:
    /// Ranks are those of the barrier, whose lane Barrier::middle it uses.
    explicit ShardValues(std::shared_ptr<Barrier> barrier);

    /// For the thread of one rank.
    std::unique_ptr<ShardMeeting> meeting(std::size_t rank) const;

  private:
    struct State;
    class OfRank;
    std::shared_ptr<State> state_;
};

}  // namespace dlprim
