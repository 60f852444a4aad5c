// SPDX-License-Identifier: MIT
// ProblemMap: what planning finds out about problems. The layers of a network pose few problems
// many times, and each is looked into once.
#pragma once

#include "engine/problem.hpp"

#include <cstddef>
#include <unordered_map>

namespace dlprim {

/// Whether nothing tells the problems apart, as for texts of Problem::key(), which take longer.
struct SameProblem {
    bool operator()(const Problem& a, const Problem& b) const;
};

struct ProblemHash {
    std::size_t operator()(const Problem& problem) const noexcept;
};

template <typename Value>
using ProblemMap = std::unordered_map<Problem, Value, ProblemHash, SameProblem>;

}  // namespace dlprim
