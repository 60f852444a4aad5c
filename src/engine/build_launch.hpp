// SPDX-License-Identifier: MIT
// build_launch: Engine::build() for devices that end launches which take too long.
#pragma once

#include "engine/engine.hpp"
#include "runtime/split_launch.hpp"

#include <memory>

namespace dlprim {

/// Engine::build(), such that launches that the engine estimates to take longer than the device's
/// launch_limit() are split.
inline std::unique_ptr<Launch> build_launch(const Engine& engine, ContextImpl& context,
                                            const Problem& problem, const Tuning& tuning) {
    const bool limited = launch_limit(context.queue()) > 0;
    const ExpectedSeconds expected(limited ? engine.estimate(context.traits(), problem, tuning)
                                           : 0);
    return engine.build(context, problem, tuning);
}

}  // namespace dlprim
