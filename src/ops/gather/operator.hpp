// SPDX-License-Identifier: MIT
// Gather: data, indices -> the parts of data that the indices name, by the modes of
// engine/indexing/indexing.hpp. Data may have any type, and is copied bit by bit. Its gradient is a
// Scatter that adds up.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::gather {

constexpr const char* type = "Gather";

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::gather
