// SPDX-License-Identifier: MIT
// Engines that failed on a device (a kernel that does not build, a launch that the driver refuses)
// are put aside: the planner takes the next one for such problems, as long as the context lives.
#pragma once

#include "engine/engine.hpp"

#include <string>

namespace dlprim {

/// What an engine is put aside for: itself and a problem, whatever the layouts.
std::string put_aside_key(const Engine& engine, Problem problem);

/// Remembers a failure, and sends it to the log. False where it was known: no other engine can
/// help.
bool put_aside(ContextImpl& context, const std::string& key, const std::string& why);

/// Engine::is_applicable; no, with what happened, for an engine that was put aside.
Verdict usable(ContextImpl& context, const Engine& engine, const Problem& problem);

/// Whether the engine has been put aside for the problem.
bool is_put_aside(ContextImpl& context, const Engine& engine, const Problem& problem);

}  // namespace dlprim
