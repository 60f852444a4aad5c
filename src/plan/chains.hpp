// SPDX-License-Identifier: MIT
// Which steps of an inference run in one launch, on CPUs.
#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace dlprim {

/// Whether waking threads for every step costs enough on this device for chains to pay.
bool may_have_chains(const Traits& device);

/// Finds runs of consecutive steps whose kernels can be functions of one program and which are
/// short. For long layers the time to wake threads is small, and a chain would only cost its
/// compilation.
std::vector<ChainRange> find_chains(const std::vector<Step>& steps);

}  // namespace dlprim
