// SPDX-License-Identifier: MIT
// PlacedTrace: what the parts of a placed network do in the steps that StepTrace records. Each part
// is a rank there. So is each way from one device to another, whose moves come one after the other
// in its row of exchanges.
//
// Threads: as StepTrace. The network's thread makes and attaches it, and others mark and record.
#pragma once

#include "api/placement/border_memory.hpp"
#include "api/placement/cut.hpp"
#include "collective/exchange/step_trace.hpp"

#include <dlprim/placed_net.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// What a part waits for before it runs forward or backward: inputs, and what other parts make.
inline constexpr const char* waits_for_values = "wait for values";

/// How a move is recorded, if it is.
struct TracedMove {
    std::shared_ptr<StepTrace> recorder;  ///< null: it is not
    std::size_t rank = 0;
    std::string name;

    bool is_on() const { return recorder && recorder->is_on(); }
};

class PlacedTrace {
  public:
    /// Records nothing.
    PlacedTrace() = default;
    PlacedTrace(std::shared_ptr<StepTrace> recorder, const std::vector<NamedDevice>& devices,
                const CutNet& net, const BorderMemory& borders);

    StepTrace* recorder() const { return recorder_.get(); }
    /// Names of the ranks.
    const std::vector<std::string>& names() const { return names_; }

    /// Says what the part's device has been given since the part's last mark.
    void mark(int part, TraceKind kind, const char* name) const;
    /// Of a move of BorderMemory, by its index.
    TracedMove move(std::size_t index) const;

  private:
    std::shared_ptr<StepTrace> recorder_;
    std::vector<std::string> names_;
    std::vector<Context> contexts_;                           ///< by part
    std::vector<std::pair<std::size_t, std::string>> moves_;  ///< their rank and name
};

}  // namespace dlprim
