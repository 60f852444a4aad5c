// SPDX-License-Identifier: MIT
// Scatter: data, indices, updates -> data in which the parts that the indices name, by the modes of
// engine/indexing/indexing.hpp, are replaced by updates, or combined with them. Several updates of
// a part are applied in the order of the indices, so that results are the same in every run.
// Without data, and with the option shape, it begins with zeros.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::scatter {

constexpr const char* type = "Scatter";

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::scatter
