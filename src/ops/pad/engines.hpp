// SPDX-License-Identifier: MIT
// The engines of Pad's gradient. Each function registers the engine of one file. Pad itself is a
// copy (engine/copy_engines.hpp).
#pragma once

#include "engine/engine.hpp"

namespace dlprim::pad {

void add_gather_engine(EngineRegistry& engines);       ///< gather.cpp
void add_gather_host_engine(EngineRegistry& engines);  ///< gather_host.cpp

}  // namespace dlprim::pad
