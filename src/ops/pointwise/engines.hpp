// SPDX-License-Identifier: MIT
// The engines of Pointwise: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::pointwise {

void add_generated_engine(EngineRegistry& engines);  ///< generated.cpp
void add_host_engine(EngineRegistry& engines);       ///< host.cpp

}  // namespace dlprim::pointwise
