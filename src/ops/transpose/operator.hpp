// SPDX-License-Identifier: MIT
// The operator Transpose, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::transpose {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::transpose
