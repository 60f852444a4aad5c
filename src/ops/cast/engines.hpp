// SPDX-License-Identifier: MIT
// The engines of Cast: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::cast {

void add_convert_engine(EngineRegistry& engines);  ///< convert.cpp
void add_host_engine(EngineRegistry& engines);     ///< host.cpp
void add_narrow_engine(EngineRegistry& engines);   ///< narrow.cpp

}  // namespace dlprim::cast
