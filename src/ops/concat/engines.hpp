// SPDX-License-Identifier: MIT
// The engine of Concat beside the two that copy one input after the other.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::concat {

void add_join_engine(EngineRegistry& engines);  ///< join.cpp

}  // namespace dlprim::concat
