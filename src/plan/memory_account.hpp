// SPDX-License-Identifier: MIT
// What a plan whose values have their places needs: its totals, the map of its memory over the
// steps, and, where it does not fit, the message that says what is largest and which batch would
// fit.
#pragma once

#include "plan/memory.hpp"
#include "plan/too_large.hpp"

namespace dlprim {

/// Fills in all of `plan` but slabs, blocks, externals and literals. Throws TooLarge if the device
/// or options.memory_limit has less, unless options.over_limit is set.
void account_for(MemoryPlan& plan, const Traits& device, const Graph& graph,
                 const LaunchSchedule& schedule, const PlanOptions& options);

}  // namespace dlprim
