// SPDX-License-Identifier: MIT
// The engines of Scatter: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::scatter {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_winners_engine(EngineRegistry& engines);    ///< winners.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every type, indices of int32 and int64, and fewer than 2^31 parts.
Verdict check(const Problem& problem);
/// Once through data, result, indices and updates, `times` times, at the speed of scattered access.
double seconds(const Traits& device, const Problem& problem, double times);

}  // namespace dlprim::scatter
