// SPDX-License-Identifier: MIT
// The operator Parameter, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::parameter {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::parameter
