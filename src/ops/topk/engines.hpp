// SPDX-License-Identifier: MIT
// The engines of TopK: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::topk {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every type, and lines of fewer than 2^31 elements.
Verdict check(const Problem& problem);
/// `steps` comparisons per element, at a billion a second and compute unit.
double seconds(const Traits& device, const Problem& problem, double steps);

}  // namespace dlprim::topk
