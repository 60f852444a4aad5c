// SPDX-License-Identifier: MIT
// The engines of Gather: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::gather {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports data of every type, in memory as it is, and indices of int32 and int64.
Verdict check(const Problem& problem);

}  // namespace dlprim::gather
