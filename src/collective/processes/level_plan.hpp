// SPDX-License-Identifier: MIT
// LevelPlan: who sends which elements to whom where sums over shards are added up level by level:
// first among the ranks of a host, then among hosts, then among groups of hosts. It computes, and
// neither moves nor adds anything.
//
// Method: a reduce-scatter and an allgather, each in stages (as in "hierarchical allreduce"). The
// ranks that meet in a stage form a group. It consists of members, which are the groups of the
// stage before; before the first stage each rank is a member by itself. All ranks of a member
// together hold each element once: of every sum that waits in the member's ShardTree. In the stage,
// the ranks that hold the same elements in each member cut them among themselves, and each adds its
// part. So a host sends each element once, to the host that adds it, whatever the number of its
// ranks.
//
//     levels {2, 2}          stage 0                      stage 1
//     rank 0, host 0   [ a a a a | - - - - ]        [ a a | - - - - - - ]
//     rank 1, host 0   [ - - - - | b b b b ]        [ - - - - | b b | - - ]
//     rank 2, host 1   [ a a a a | - - - - ]        [ - - | a a | - - - - ]
//     rank 3, host 1   [ - - - - | b b b b ]        [ - - - - - - | b b ]
//
// Members may differ in size, as hosts with 3 and with 1 ranks do. Elements are then cut wherever a
// rank of any member begins, so that a rank may hold several ranges.
//
// A sum that waits is a node of one binary tree, and only halves of a node are added. The result
// has therefore the same bits for any levels and any division of shards.
//
// Threads: an object does not change after it was constructed.
#pragma once

#include "base/shard_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlprim {

/// Elements [begin, end) of a tensor.
struct ElementRange {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
    bool operator==(const ElementRange&) const = default;
};

/// Part `index` of `count` parts of a range, which differ by one grain at most and begin at
/// multiples of `grain` elements from its beginning.
inline ElementRange cut_evenly(const ElementRange& whole, std::size_t index, std::size_t count,
                               std::int64_t grain) {
    const std::int64_t grains = (whole.size() + grain - 1) / grain;
    const auto begin = [&](std::size_t i) {
        const std::int64_t before =
            grains * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count) * grain;
        return std::min(whole.end, whole.begin + before);
    };
    return {begin(index), begin(index + 1)};
}

class LevelPlan {
  public:
    /// For each rank, the number of the group that it belongs to.
    using Groups = std::vector<std::size_t>;
    /// Groups of ranks that follow each other: {8, 16} are 16 hosts of 8 ranks.
    static std::vector<Groups> groups_of(const std::vector<std::size_t>& sizes);
    /// Each rank in a group by itself.
    static Groups alone(std::size_t ranks);
    /// The groups of the level before that each group consists of, in the order of their first
    /// ranks. Throws Error(invalid_argument) where these are not whole groups.
    using Members = std::vector<std::vector<std::size_t>>;
    static Members members_of(const Groups& level, const Groups& before);

    /// Rank i has computed the shards parts[i]. levels[k] are the groups that meet in stage k; each
    /// consists of whole groups of the level before, and the last level is one group of all. The
    /// numbers of groups begin with 0 and leave none out. Throws Error(invalid_argument) where that
    /// is not so, or where parts do not cover all shards.
    LevelPlan(std::vector<Groups> levels, int shards, const std::vector<ShardRange>& parts);

    std::size_t ranks() const { return ranks_; }
    std::size_t stages() const { return levels_.size(); }
    /// The sums that a rank has before a stage, in the order of their shards. After the last stage,
    /// as nodes(rank, stages()), it is the one of all shards.
    const std::vector<ShardRange>& nodes(std::size_t rank, std::size_t stage) const {
        return nodes_[stage][group_before(rank, stage)];
    }
    /// The sums of all members of a rank's group, in the order in which ShardTree takes them.
    struct Addend {
        std::size_t member;  ///< of the group; its ranks are in Kept::holders
        std::size_t node;    ///< of the member's nodes()
        ShardRange shards;
    };
    const std::vector<Addend>& addends(std::size_t rank, std::size_t stage) const {
        return addends_[stage][levels_[stage][rank]];
    }

    class Division;

  private:
    std::size_t group_before(std::size_t rank, std::size_t stage) const {
        return stage == 0 ? rank : levels_[stage - 1][rank];
    }
    void add_stage(std::size_t stage, int shards);

    std::size_t ranks_;
    std::vector<Groups> levels_;
    /// By stage and group: the numbers of its members, which are groups of the stage before.
    std::vector<Members> members_;
    std::vector<std::vector<std::vector<ShardRange>>> nodes_;
    std::vector<std::vector<std::vector<Addend>>> addends_;
};

/// How the ranks of a plan divide a tensor. Its size and the time to make it grow with the number
/// of ranks.
class LevelPlan::Division {
  public:
    /// Parts of a range begin at multiples of `grain` elements from its beginning. The plan
    /// outlives the object.
    Division(const LevelPlan& plan, std::int64_t elements, std::int64_t grain);

    /// Elements that go to a rank, or come from it.
    struct Message {
        std::size_t rank;
        ElementRange range;
    };
    /// Elements that a rank adds, and which rank of each member has them: itself among them.
    struct Kept {
        ElementRange range;
        std::vector<std::size_t> holders;
    };
    /// What a rank does in a stage. It sends all its nodes() of the elements, receives those of the
    /// others, and adds. Between two ranks, messages have the same order on both sides.
    ///
    /// The means go back in the reverse order of stages: what was received is then sent, and what
    /// was sent is received.
    struct Stage {
        std::vector<Message> sends, receives;
        std::vector<Kept> keeps;
    };
    Stage stage(std::size_t rank, std::size_t stage) const;
    /// The elements that a rank holds before a stage. Before the first: all.
    std::vector<ElementRange> held(std::size_t rank, std::size_t stage) const;

  private:
    /// Elements that one rank of each member holds.
    struct Cell {
        ElementRange range;
        std::vector<std::size_t> holders;
    };
    /// What of a cell its holder number `member` keeps.
    ElementRange part(const Cell& cell, std::size_t member) const {
        return cut_evenly(cell.range, member, cell.holders.size(), grain_);
    }
    struct Holding {
        ElementRange range;
        std::size_t rank;
    };
    using Holdings = std::vector<Holding>;  ///< of the ranks of a group, in the order of elements
    static std::vector<Cell> cells_of(const std::vector<const Holdings*>& members);

    const LevelPlan& plan_;
    std::int64_t elements_, grain_;
    std::vector<std::vector<std::vector<Cell>>> cells_;  ///< by stage and group
};

}  // namespace dlprim
