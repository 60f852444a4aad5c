// SPDX-License-Identifier: MIT
// The operator Reorder, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::reorder {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::reorder
