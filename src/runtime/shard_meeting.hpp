// SPDX-License-Identifier: MIT
// ShardMeeting: where the shards of a batch, each computed by a rank of its own, give each other
// values in the middle of a part (batch norms: statistics of the whole batch).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dlprim {

class ShardMeeting {
  public:
    /// Gives `values` to all shards, and returns those of all, in the order of the shards. Waits
    /// for the others. All call for the same things in the same order: `what` says for which, in
    /// errors. Throws what dlprim::Barrier throws.
    std::function<std::vector<std::vector<double>>(const std::string& what,
                                                   const std::vector<double>& values)>
        gather;
};

}  // namespace dlprim
