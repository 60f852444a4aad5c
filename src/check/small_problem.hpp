// SPDX-License-Identifier: MIT
// A smaller problem of the same kind, on which a check of an engine takes little time.
#pragma once

#include "engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace dlprim {

/// Whether the engine runs a problem with what the check has, its programs for example.
using Suits = std::function<bool(const Problem&)>;

/// The same problem with fewer samples: 2, else 16, else 128, or elements where everything is a
/// vector (4096, else 65536). They are the first dimension of the first output and of the inputs
/// that go with it, as far as the operator's shape rule allows it. If many elements are left and
/// `cuts_dimensions`, other dimensions above 512, wherever they occur, become 128 and the remainder
/// by 64, so that alignments stay. Layouts are those that the engine has for the smaller problem
/// and that correspond to the given ones. Nothing if none is smaller, suits, and has this tuning.
std::optional<Problem> smaller_problem(const Traits& device, const Engine& engine,
                                       const Problem& problem, const Tuning& tuning,
                                       bool cuts_dimensions, const Suits& suits);

/// Elements of all operands.
std::int64_t elements_of(const Problem& problem);

/// The number of inputs that the operator itself has. Operands of the epilogue follow them.
std::size_t own_inputs(const Problem& problem);

}  // namespace dlprim
