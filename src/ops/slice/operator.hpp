// SPDX-License-Identifier: MIT
// The operator Slice, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::slice {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::slice
