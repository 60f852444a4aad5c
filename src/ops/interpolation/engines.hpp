// SPDX-License-Identifier: MIT
// The engines of Interpolation and its gradient: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::interpolation {

void add_reference_engine(EngineRegistry& engines);      ///< reference.cpp
void add_backward_engine(EngineRegistry& engines);       ///< backward.cpp
void add_host_engine(EngineRegistry& engines);           ///< host.cpp
void add_backward_host_engine(EngineRegistry& engines);  ///< backward_host.cpp

}  // namespace dlprim::interpolation
