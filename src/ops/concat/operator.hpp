// SPDX-License-Identifier: MIT
// The operator Concat, which operator.cpp describes.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::concat {

// Each function registers the engines of one file.
void add_join_engine(EngineRegistry& engines);  ///< join.cpp

}  // namespace dlprim::concat
