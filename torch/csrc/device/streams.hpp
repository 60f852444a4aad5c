// SPDX-License-Identifier: MIT
// Streams and events over a device's one in-order queue.
#pragma once

#include "common.hpp"

#include <c10/core/Stream.h>

namespace dlprim_torch {

c10::Stream current_stream(c10::Device device);
c10::Stream new_stream(c10::Device device);
c10::Stream exchange_stream(c10::Stream stream);

/// Events of c10 are void pointers, which these make at the first record and delete.
///
/// An event that is to be timed waits for the device when it is recorded and takes the host's
/// clock, since the library has no events with times. Others remember the device; to wait for one
/// waits for all of the device's work.
void record_event(void** event, int device, bool timed);
void wait_for_event(void* event);
double milliseconds_between(void* from, void* to);
void delete_event(void* event) noexcept;

}  // namespace dlprim_torch
