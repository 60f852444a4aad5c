// SPDX-License-Identifier: MIT
// Disabled engines. If an engine fails on a device (its kernel does not build, or the driver
// refuses a launch), it is disabled for such problems as long as the context lives, and the planner
// uses the next engine.
#pragma once

#include "engine/engine.hpp"

#include <string>

namespace dlprim {

/// The key of a disabled engine: its name and a problem without layouts.
std::string disable_key(const Engine& engine, const Problem& problem);

/// An engine that does not work for a problem.
struct FailedEngine {
    std::string key;  ///< its disable_key()
    std::string why;
};

/// Records and logs a failure; the line is left out if `quiet`. Returns false if it was recorded
/// before, which means that no other engine can help.
bool disable(ContextImpl& context, const std::string& key, const std::string& why,
             bool quiet = false);

/// Whether a failure is recorded under that key.
bool has_failed(ContextImpl& context, const std::string& key);

/// Engine::is_applicable, but no, with the reason, if the engine is disabled.
Verdict usable(ContextImpl& context, const Engine& engine, const Problem& problem);

/// Whether the engine is disabled for the problem.
bool is_disabled(ContextImpl& context, const Engine& engine, const Problem& problem);

}  // namespace dlprim
