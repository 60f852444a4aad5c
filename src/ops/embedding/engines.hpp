// SPDX-License-Identifier: MIT
// The engines of Embedding and its gradient: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::embedding {

void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

}  // namespace dlprim::embedding
