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
/// An event is a dp::Event behind what was enqueued before it was recorded. To record it and to ask
/// whether it is done wait for nothing, also where it is timed. To wait for one waits for all of
/// the device's work, and throws IndexError as synchronize() does.
void record_event(void** event, int device, bool timed);
bool event_done(void* event);
void wait_for_event(void* event);
/// Waits for both. Throws unless both are timed.
double milliseconds_between(void* from, void* to);
void delete_event(void* event) noexcept;

}  // namespace dlprim_torch
