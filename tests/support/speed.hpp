// SPDX-License-Identifier: MIT
// The speed of a case on a device, by engine, beside the bound of its operator.
#pragma once

#include "support/cases.hpp"

#include <dlprim/context.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace dlprim::testing {

/// Calls the operator eagerly, forward and backward, by the planner's choice and with each engine
/// that applies forced (DLPRIM_TEST_ENGINE leaves engines out), and writes a line each: the median
/// time of a call, what runs in it, and the roofline bound, that is, the operator's nominal
/// operations at the device's peak or its operands' bytes once through memory, whichever takes
/// longer. Results are compared with the oracle where that is done soon, else with the host's, else
/// with those of the planner's choice; what is off is added to `failures`.
void measure_case(const Context& device, const Case& one, unsigned seed, std::ostream& out,
                  std::vector<std::string>& failures);

}  // namespace dlprim::testing
