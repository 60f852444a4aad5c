// SPDX-License-Identifier: MIT
// The operator Split, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::split_op {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::split_op
