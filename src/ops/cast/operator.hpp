// SPDX-License-Identifier: MIT
// Cast: the same elements in another dtype, by C's conversions. There are two exceptions: float to
// integer saturates (NaN becomes 0), and a conversion to bool tests whether an element differs from
// 0. With `reinterpret`, the bits stay as they are.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::cast {

/// Whether a pointwise program converts it: to half, bfloat16 or float, but not from double or a
/// narrow type.
bool is_program(const Problem& problem);

// Each function registers the engines of one file.
void add_convert_engine(EngineRegistry& engines);    ///< convert.cpp
void add_generated_engine(EngineRegistry& engines);  ///< generated.cpp
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_narrow_engine(EngineRegistry& engines);     ///< narrow.cpp

}  // namespace dlprim::cast
