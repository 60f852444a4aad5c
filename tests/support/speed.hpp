// SPDX-License-Identifier: MIT
// The speed of a case on a device, by engine, compared with the bound of its operator.
#pragma once

#include "support/cases.hpp"

#include <dlprim/context.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace dlprim::testing {

/// Calls the operator eagerly, forward and backward, with the planner's choice and with each engine
/// that applies (DLPRIM_TEST_ENGINE leaves engines out). Writes a line for each with the median
/// time of a call, the engines in it, and the roofline bound. That bound is the larger of two
/// times: the operator's nominal operations at the device's peak, and its operands' bytes once
/// through memory. Results are compared with the oracle's if that is fast, else with the host's,
/// else with those of the planner's choice. Wrong results are added to `failures`.
void measure_case(const Context& device, const Case& one, unsigned seed, std::ostream& out,
                  std::vector<std::string>& failures);

}  // namespace dlprim::testing
