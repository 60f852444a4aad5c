// SPDX-License-Identifier: MIT
// Constant: a literal of the network, whose values stand in its options.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::constant {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::constant
