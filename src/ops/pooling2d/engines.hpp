// SPDX-License-Identifier: MIT
// The engines of Pooling2D and its gradient: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::pooling2d {

void add_generic_engine(EngineRegistry& engines);        ///< generic.cpp
void add_host_engine(EngineRegistry& engines);           ///< host.cpp
void add_backward_engine(EngineRegistry& engines);       ///< backward.cpp
void add_backward_host_engine(EngineRegistry& engines);  ///< backward_host.cpp

}  // namespace dlprim::pooling2d
