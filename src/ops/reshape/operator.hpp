// SPDX-License-Identifier: MIT
// The operator Reshape, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::reshape {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::reshape
