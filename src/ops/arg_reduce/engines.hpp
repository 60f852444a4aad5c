// SPDX-License-Identifier: MIT
// The engines of ArgReduce: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::arg_reduce {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem without an epilogue whose values have the input's type.
Verdict check(const Problem& problem);

}  // namespace dlprim::arg_reduce
