// SPDX-License-Identifier: MIT
// Gather: data, indices -> the parts of data that the indices name, by the modes of
// engine/indexing/indexing.hpp. Data may have any type, and is copied bit by bit. Its gradient is a
// Scatter that adds up.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::gather {

constexpr const char* type = "Gather";

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports data of every type, in memory as it is, and indices of int32 and int64.
Verdict check(const Problem& problem);

}  // namespace dlprim::gather
