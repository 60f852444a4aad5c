// SPDX-License-Identifier: MIT
// Convolutions of doubles on the host.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::conv2d {

void add_host_double_engines(EngineRegistry& registry);

}  // namespace dlprim::conv2d
