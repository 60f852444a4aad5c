// SPDX-License-Identifier: MIT
// The operator Fork, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::fork {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::fork
