// SPDX-License-Identifier: MIT
// The engines of Pad's gradient; Pad is a copy (engine/copy_engines.hpp): one function per file
// registers what that holds.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::pad {

void add_gather_engine(EngineRegistry& engines);       ///< gather.cpp
void add_gather_host_engine(EngineRegistry& engines);  ///< gather_host.cpp

}  // namespace dlprim::pad
