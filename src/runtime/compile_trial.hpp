// SPDX-License-Identifier: MIT
// Measures whether a driver compiles one program at a time in a process, whatever the threads.
#pragma once

#include "runtime/compile_target.hpp"

#include <functional>

namespace dlprim {

/// Measures it with `compile`, which compiles a small program, a different one for each number, and
/// is called on three threads at once. The process must have three cores.
bool compiles_in_turn(const std::function<void(int number)>& compile);

/// Measures it for a device. The answer is kept in the target's binary cache for the next time.
bool compiles_in_turn(const CompileTarget& target);

}  // namespace dlprim
