// SPDX-License-Identifier: MIT
// Which steps of an inference run as one launch, on CPUs.
#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace dlprim {

/// Whether waking threads for every step costs enough on this device.
bool may_have_chains(const Traits& device);

/// Runs of steps whose kernels can be functions of one program, and which are short: where layers
/// take long, waking up for each costs little, and a chain a compilation.
std::vector<ChainRange> find_chains(const std::vector<Step>& steps);

}  // namespace dlprim
