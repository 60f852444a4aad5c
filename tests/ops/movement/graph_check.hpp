// SPDX-License-Identifier: MIT
// Checks an operator's engines and gradient rule without planner or executor. A graph of one node
// and its gradient is interpreted node by node, each with every engine in every layout, and
// compared with the oracle.
#pragma once

#include "graph/operator.hpp"

#include <dlprim/context.hpp>

#include <random>
#include <string>
#include <vector>

namespace dlprim {

/// Random contents: "normal", "distinct" (a shuffled ramp), "equal" (few values, many ties).
HostArray random_array(const Shape& shape, std::string_view fill, std::mt19937& random,
                       DType dtype = DType::f32);

/// Runs the forward pass and, for float inputs, the backward pass on every context.
void check_operator(std::string_view type, const Attrs& options,
                    const std::vector<HostArray>& inputs);

}  // namespace dlprim
