// SPDX-License-Identifier: MIT
// PieceRoutes: how pieces of data go from the process that has each to all processes of a run,
// level by level. It computes, and moves nothing.
//
// Processes that share memory are a group of the first level; groups of each level consist of whole
// groups of the level before. A piece enters each group once, at one of its processes, and is
// handed on there: first among the groups of the last level, then within each of them, and so on.
// Where memory is shared, it then lies in that of one process, its keeper, and the others read it
// there.
//
//     levels {2, 2}                     between hosts     keepers at host 0   and at host 1
//     process 0, host 0   piece 0       0 -> 2            0                   2
//     process 1, host 0   piece 1       1 -> 3            1                   3
//     process 2, host 1   piece 2       2 -> 0            0                   2
//     process 3, host 1   piece 3       3 -> 1            1                   3
//
// So a host receives each piece once, whatever the number of its processes, and each of these
// carries as many pieces as the others where groups have the same size.
//
// Threads: an object does not change after it was constructed.
#pragma once

#include "collective/processes/level_plan.hpp"

#include <cstddef>
#include <vector>

namespace dlprim {

class PieceRoutes {
  public:
    using Groups = LevelPlan::Groups;  ///< here: of processes
    /// Each process has a piece, which has its number. For the process `self`.
    static PieceRoutes of_all(const std::vector<Groups>& levels, std::size_t self);
    /// The first process alone has one, piece 0. In each group, groups that have it hand it to as
    /// many that have not (a binomial tree), so that nobody sends it often.
    static PieceRoutes of_first(const std::vector<Groups>& levels, std::size_t self);

    struct Move {
        std::size_t process;  ///< the other one
        std::size_t piece;
        bool operator==(const Move&) const = default;
    };
    /// What `self` sends and receives at once. Between two processes, pieces have the same order on
    /// both sides. All processes have the same number of rounds.
    struct Round {
        std::vector<Move> sends, receives;
    };
    const std::vector<Round>& rounds() const { return rounds_; }
    /// The processes that share memory with `self`, itself among them.
    const std::vector<std::size_t>& mates() const { return mates_; }
    /// Which of them has a piece in the end.
    std::size_t keeper(std::size_t piece) const { return keepers_[piece]; }
    std::size_t pieces() const { return keepers_.size(); }

  private:
    std::vector<Round> rounds_;
    std::vector<std::size_t> mates_, keepers_;
};

}  // namespace dlprim
