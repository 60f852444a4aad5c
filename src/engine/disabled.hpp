// SPDX-License-Identifier: MIT
// Engines that failed on a device (a kernel that does not build, a launch that the driver refuses)
// are disabled for such problems: the planner takes the next one, as long as the context lives.
#pragma once

#include "engine/engine.hpp"

#include <string>

namespace dlprim {

/// What an engine is disabled for: its name and a problem, whatever the layouts.
std::string disable_key(const Engine& engine, Problem problem);

/// Remembers a failure, and sends it to the log. False where it was known: no other engine can
/// help.
bool disable(ContextImpl& context, const std::string& key, const std::string& why);

/// Engine::is_applicable; no, with what happened, for an engine that is disabled.
Verdict usable(ContextImpl& context, const Engine& engine, const Problem& problem);

/// Whether the engine is disabled for the problem.
bool is_disabled(ContextImpl& context, const Engine& engine, const Problem& problem);

}  // namespace dlprim
