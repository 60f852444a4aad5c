// SPDX-License-Identifier: MIT
// RunAgain: trades time for memory. Forward nodes run a second time, in backward, so that what they
// make need not be kept until then (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
// 2016):
//
//     x -> conv -> y -> norm -> z -> ...      forward; y and z are free once they have been read
//     x -> conv -> y' -> norm -> z' -> their gradients        backward
//
// It is the last change of a graph, made when engines and layouts are chosen: all other nodes stay
// as they are, and a node that runs again takes the choice of the node that it repeats. So every
// result has the same bits as without.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlprim {

/// What is appended to the names of nodes that run again, and of what they make.
inline constexpr std::string_view again_suffix = "/again";

class RunAgain {
  public:
    /// `constant`, by ValueId: values that are made once, before the first run. The graph must be
    /// sorted, have no tombstones, and outlive this object.
    RunAgain(const Graph& graph, const std::vector<char>& constant);

    /// Whether a node may run again. It may not if it makes nothing in forward that is worth it
    /// (views; statistics, which are much smaller than what they are made from; results that are
    /// kept in any case), or if it reads what forward overwrites, such as running statistics.
    bool can(NodeId node) const { return can_[at(node)] != 0; }
    /// The bytes that need not be kept if it does, in plain layouts.
    std::uint64_t bytes(NodeId node) const { return bytes_[at(node)]; }
    /// The forward nodes whose results it reads, through views.
    std::vector<NodeId> sources(NodeId node) const;

    /// Which nodes have to run again if results of the nodes in `again` (by NodeId) are not kept:
    /// those of them that backward reads, directly or through others of them.
    std::vector<char> needed(const std::vector<char>& again) const;
    /// The graph in which they do, right before the node that reads their results first. Sets
    /// `origin`, by its NodeId, to the node of the given graph that it is or repeats.
    Graph apply(const std::vector<char>& again, std::vector<NodeId>& origin) const;

  private:
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    bool shares_memory(const Node& node) const;
    void find_visible();
    void find_small();
    void find_able(const std::vector<char>& constant);
    /// By ValueId: values that are not kept.
    std::vector<char> dropped(const std::vector<char>& again) const;

    const Graph& graph_;
    std::vector<char> visible_;  ///< by ValueId: kept, since others than nodes read it
    std::vector<char> small_;    ///< by ValueId: statistics
    std::vector<char> can_;      ///< by NodeId
    std::vector<std::uint64_t> bytes_;
};

}  // namespace dlprim
