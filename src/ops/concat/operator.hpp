// SPDX-License-Identifier: MIT
// The operator Concat, which operator.cpp describes.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::concat {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::concat
