// SPDX-License-Identifier: MIT
// Loads plugins of engines: the files dlprim_engines_*.so of the folder of plugins.
#pragma once

#include "engine/engine.hpp"

namespace dlprim {

/// Adds the engines of all plugins, in front of the library's own: the last engine of the host is
/// the one with which others are compared. A plugin that cannot be used is left out, and
/// tell_left_out_plugins() says why.
void add_plugin_engines(EngineRegistry& engines);

/// Logs, once in a process, a warning for each plugin that was left out.
void tell_left_out_plugins();

}  // namespace dlprim
