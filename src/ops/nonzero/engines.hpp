// SPDX-License-Identifier: MIT
// The engines of NonzeroRows: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::nonzero {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem.
Verdict check(const Problem& problem);
/// A binary search for each row.
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::nonzero
