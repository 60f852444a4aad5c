// SPDX-License-Identifier: MIT
// The operator Squeeze, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::squeeze {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::squeeze
