// SPDX-License-Identifier: MIT
// See streams.hpp.
#include "device/streams.hpp"

#include "device/devices.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <optional>

namespace dlprim_torch {
namespace {

struct Event {
    int device = 0;
    std::optional<std::chrono::steady_clock::time_point> time;
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
    if (!timed) return;
    synchronize(device);
    own.time = std::chrono::steady_clock::now();
}

void wait_for_event(void* event) {
    if (event != nullptr) synchronize(static_cast<Event*>(event)->device);
}

double milliseconds_between(void* from, void* to) {
    TORCH_CHECK(from != nullptr && to != nullptr,
                "Both events must be recorded before the time between them is asked for.");
    const Event &a = *static_cast<Event*>(from), &b = *static_cast<Event*>(to);
    TORCH_CHECK(a.time && b.time, "Both events need enable_timing=True.");
    return std::chrono::duration<double, std::milli>(*b.time - *a.time).count();
}

void delete_event(void* event) noexcept {
    delete static_cast<Event*>(event);
}

}  // namespace dlprim_torch
