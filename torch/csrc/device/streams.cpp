// SPDX-License-Identifier: MIT
// See streams.hpp.
#include "device/streams.hpp"

#include "device/devices.hpp"
#include "device/errors.hpp"

#include <dlprim/event.hpp>

#include <atomic>
#include <map>
#include <optional>

namespace dlprim_torch {
namespace {

struct Event {
    int device = 0;
    bool timed = false;
    dp::Event point;  // Done from the start where the device had not been opened.
};

thread_local std::map<int, c10::StreamId> current_ids;
std::atomic<c10::StreamId> next_id{1};

}  // namespace

c10::Stream current_stream(c10::Device device) {
    const auto found = current_ids.find(device.index());
    return c10::Stream(c10::Stream::UNSAFE, device, found == current_ids.end() ? 0 : found->second);
}

c10::Stream new_stream(c10::Device device) {
    return c10::Stream(c10::Stream::UNSAFE, device, next_id++);
}

c10::Stream exchange_stream(c10::Stream stream) {
    const c10::Stream before = current_stream(stream.device());
    current_ids[stream.device_index()] = stream.id();
    return before;
}

void record_event(void** event, int device, bool timed) {
    if (*event == nullptr) *event = new Event;
    Event& own = *static_cast<Event*>(*event);
    own.device = device;
    own.timed = timed;
    if (timed) context(device);
    if (const std::optional<dp::Context> home = opened(device))
        own.point = translated([&] { return dp::Event(*home, timed); });
}

bool event_done(void* event) {
    return event == nullptr || translated([&] { return static_cast<Event*>(event)->point.done(); });
}

void wait_for_event(void* event) {
    if (event != nullptr) synchronize(static_cast<Event*>(event)->device);
}

double milliseconds_between(void* from, void* to) {
    TORCH_CHECK(from != nullptr && to != nullptr,
                "Both events must be recorded before the time between them is asked for.");
    const Event &a = *static_cast<Event*>(from), &b = *static_cast<Event*>(to);
    TORCH_CHECK(a.timed && b.timed, "Both events need enable_timing=True.");
    return translated([&] { return b.point.elapsed_ms(a.point); });
}

void delete_event(void* event) noexcept {
    if (may_free()) delete static_cast<Event*>(event);
}

}  // namespace dlprim_torch
