// SPDX-License-Identifier: MIT
// The operator Flatten, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::flatten {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::flatten
