// SPDX-License-Identifier: MIT
// The engines of Scan: each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"
#include "ops/scan/options.hpp"

namespace dlprim::scan {

void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem without an epilogue whose results have the operator's type.
Verdict check(const Problem& problem);
Options options_of(const Problem& problem);

}  // namespace dlprim::scan
