// SPDX-License-Identifier: MIT
// A smaller problem of the same kind, on which a check of an engine takes little time.
#pragma once

#include "engine/engine.hpp"

#include <cstddef>
#include <optional>

namespace dlprim {

/// The same problem with two samples, or with 4096 elements where everything is a vector: the first
/// dimension of the first output and of the inputs that go with it, as far as the operator's shape
/// rule allows it. Layouts are those that the engine has for the smaller problem and that
/// correspond to the given ones. Nothing if there is no smaller problem, or if the engine does not
/// apply to it with this tuning.
std::optional<Problem> smaller_problem(const Traits& device, const Engine& engine,
                                       const Problem& problem, const Tuning& tuning);

/// The number of inputs that the operator itself has. Operands of the epilogue follow them.
std::size_t own_inputs(const Problem& problem);

}  // namespace dlprim
