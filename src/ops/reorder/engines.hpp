// SPDX-License-Identifier: MIT
// The engines of Reorder: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::reorder {

void add_host_engine(EngineRegistry& engines);      ///< host.cpp
void add_generic_engine(EngineRegistry& engines);   ///< generic.cpp
void add_strided_engines(EngineRegistry& engines);  ///< strided.cpp

}  // namespace dlprim::reorder
