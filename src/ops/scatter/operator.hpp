// SPDX-License-Identifier: MIT
// Scatter: data, indices, updates -> data in which the parts that the indices name, by the modes of
// engine/indexing/indexing.hpp, are replaced by updates, or combined with them. Several updates of
// a part are applied in the order of the indices, so that results are the same in every run.
// Without data, and with the option shape, it begins with zeros.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::scatter {

constexpr const char* type = "Scatter";

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_winners_engine(EngineRegistry& engines);    ///< winners.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every type, indices of int32 and int64, and fewer than 2^31 parts.
Verdict check(const Problem& problem);
/// Once through data, result, indices and updates, `times` times, at the speed of scattered access.
double seconds(const Traits& device, const Problem& problem, double times);

}  // namespace dlprim::scatter
