// SPDX-License-Identifier: MIT
// WeightUses: whether packed weights of eager calls are worth their memory. In training each step
// changes the weights, so that what is packed is used once; kept for every layer and direction, it
// takes several times the memory of the weights.
#pragma once

#include "base/lru_map.hpp"
#include "exec/eager_entry.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace dlprim {

class WeightUses {
  public:
    explicit WeightUses(std::size_t most) : uses_(most), passing_(most) {}

    /// Notes a call with these parameters, which `params` is the memory of. The first
    /// `problem` bytes of the key are those of the problem, and the rest says where the parameters
    /// lie. Returns false if they have changed since the last call of the same key, or did so
    /// lately: until they have stayed the same for `trusted` calls. In training they are taken to
    /// change from the first call on, and memory that others write to counts as changed. Other
    /// tensors in the memory of earlier ones are new, not changed; but where `trusted` sets of
    /// parameters of a problem came and none of them was seen again, as weights that are cast for
    /// each call (autocast), new ones are taken to change too.
    bool worth_keeping(const std::string& key, std::size_t problem, const EagerCall& call,
                       std::span<const EagerOperand> params);

    static constexpr int trusted = 8;

  private:
    struct Use {
        std::uint64_t versions = 0, generations = 0;
        int unchanged = trusted;
    };
    LruMap<Use> uses_;
    LruMap<int> passing_;  ///< by problem: sets of parameters since one was last seen again
};

}  // namespace dlprim
