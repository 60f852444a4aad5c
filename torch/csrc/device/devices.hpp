// SPDX-License-Identifier: MIT
// The OpenCL devices as ocl:0, ocl:1, ..., and the Context of each, which is opened at its first
// use.
//
// Threads: everything here may be called by any thread. The current device is a thread's own.
//
// A process that was forked after a device was opened can use none: OpenCL drivers do not survive a
// fork. context() throws there, and memory is leaked instead of freed.
#pragma once

#include "common.hpp"

#include <optional>

namespace dlprim_torch {

/// The devices, the best first; with DLPRIM_DEVICE, the one that it names is first. They are looked
/// up once. Empty where there is no OpenCL device, or the lookup failed.
const std::vector<dp::DeviceInfo>& devices() noexcept;
int device_count() noexcept;
/// Why there is no device, and what would help; empty where there is one.
std::string why();

/// Opens the device, or returns it as opened before. Throws for a device that is not there, with
/// those that are, and in a forked process.
const dp::Context& context(int device);
/// The device's context if it is open already.
std::optional<dp::Context> opened(int device);

int current_device() noexcept;
/// Throws for a device that is not there.
void set_current_device(int device);
/// As above, without a check.
void set_current_device_unchecked(int device) noexcept;

/// Waits until all work of the device is done. Throws IndexError where a kernel found an index out
/// of range. A device that is not open has no work.
void synchronize(int device);
/// Frees memory that the device has cached.
void empty_cache(int device) noexcept;

/// Throws in a bad fork.
void check_process();
/// Whether this process was forked from one that had opened a device.
bool in_bad_fork() noexcept;
/// Whether memory may be freed: not in a bad fork, and not when the process is exiting, since
/// drivers may be gone by then.
bool may_free() noexcept;
/// Waits for all work and keeps memory from being freed from now on; called at exit.
void shut_down() noexcept;

}  // namespace dlprim_torch
