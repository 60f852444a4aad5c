// SPDX-License-Identifier: MIT
// LaunchSchedule: the launches of a plan in order. It includes the layout conversions and packings
// that the chosen engines need, and the stored forms of values that launches read and write.
#pragma once

#include "plan/choose.hpp"
#include "plan/plan.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// A value in one layout. A value has one Stored for where it is made (or lives), and one for each
/// conversion.
struct Stored {
    ValueId value = no_value;  ///< no_value: workspace
    Layout layout;
    std::uint64_t bytes = 0;
    int alias = -1;                  ///< another Stored whose memory it shares
    std::uint64_t alias_offset = 0;  ///< bytes from where that begins
    int first = 1 << 30, last = -1;  ///< of an alias root: its lifetime in the schedule
    Place place;                     ///< of an alias root
    std::string content = {};        ///< of what setup makes, with PlanOptions::kept: how
};

struct Item {
    enum class Kind : std::uint8_t { node, reorder, pack, copy };
    Kind kind = Kind::node;
    int choice = -1;        ///< for node and pack: index of the node and of its choice
    int packed_input = -1;  ///< for pack: which input of that node
    std::string name, type;
    Part part = Part::forward;
    std::vector<int> reads, writes;  ///< Stored
    int workspace = -1;              ///< Stored
};

struct LaunchSchedule {
    std::vector<Item> items;  ///< setup items first
    std::size_t setup = 0;    ///< number of setup items
    std::vector<Stored> stored;
    std::vector<int> native;  ///< by ValueId: where the value is made or lives
    std::map<ValueId, int>
        results;  ///< by graph output and gradient: the Stored that the caller gets
    int root(int id) const;
    /// Where it begins, when its root has a place.
    Place place(int id) const;
    /// The Stored of a value in this layout, or -1.
    int find(ValueId value, const Layout& layout) const;
    std::map<std::pair<ValueId, std::string>, int> converted;
};

/// Graph outputs and gradients are converted to plain unless the options leave their layouts free.
/// Items of constant values come first.
LaunchSchedule make_launch_schedule(const Traits& device, const Graph& graph,
                                    const std::vector<char>& constant,
                                    const std::vector<Choice>& choices, const PlanOptions& options);

}  // namespace dlprim
