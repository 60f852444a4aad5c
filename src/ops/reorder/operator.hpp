// SPDX-License-Identifier: MIT
// The operator Reorder, which operator.cpp describes.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::reorder {

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);      ///< host.cpp
void add_generic_engine(EngineRegistry& engines);   ///< generic.cpp
void add_strided_engines(EngineRegistry& engines);  ///< strided.cpp

}  // namespace dlprim::reorder
