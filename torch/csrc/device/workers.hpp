// SPDX-License-Identifier: MIT
// PyTorch's threads that run backward passes on devices, when the program ends.
//
// A backward pass returns before its thread has let go of it, and what the thread still holds may
// be an object of Python. A thread that asks for Python's lock while Python ends is ended, within a
// destructor, which aborts the program ("terminate called without an active exception"). So the
// program waits for these threads first.
#pragma once

#include "common.hpp"

#include <chrono>

namespace dlprim_torch {

/// Notes that the calling thread works for a device, which PyTorch says when it starts the thread.
void note_worker(int device) noexcept;

/// Waits until these threads have let go of all backward passes that have returned, at most for
/// `patience`: a pass under way may wait for what does not come. Without Python's lock.
void settle_workers(std::chrono::milliseconds patience);

}  // namespace dlprim_torch
