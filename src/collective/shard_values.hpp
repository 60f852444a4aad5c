// SPDX-License-Identifier: MIT
// ShardValues: small values that the ranks of a team, each with one shard of the batch, give each
// other in the middle of a step. In the memory of the process, or by the transport between
// processes of one rank each.
#pragma once

#include "collective/barrier.hpp"
#include "collective/process_group.hpp"
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

    /// The same for ranks of a process each. Nothing else may use the group meanwhile.
    explicit ShardValues(std::shared_ptr<ProcessGroup> group);

    /// For the thread of one rank. With a group, that of this process.
    std::unique_ptr<ShardMeeting> meeting(std::size_t rank) const;

  private:
    struct State;
    class OfRank;
    class OfProcess;
    std::shared_ptr<State> state_;
};

}  // namespace dlprim
