// SPDX-License-Identifier: MIT
// The device's times of DistributedDataParallel's phases, which it logs for some steps. Without a
// timer of the device, PyTorch warns in every program that it has none.
#include "common.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <map>

namespace dlprim_torch {
namespace {

class Timer final : public c10d::Timer {
  public:
    explicit Timer(c10::Device device) : device_(device) {}

    void record(Event event) override {
        c10d::Timer::record(event);  // the host's time
        const auto own = events_.try_emplace(event, device_.type(), c10::EventFlag::BACKEND_DEFAULT);
        own.first->second.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    }

    /// Waits for the device. Nothing where a phase was not reached, or the events are of different
    /// steps.
    std::optional<std::int64_t> measureDifference(Event start, Event end) override {
        const auto first = events_.find(start);
        const auto last = events_.find(end);
        if (first == events_.end() || last == events_.end()) return std::nullopt;
        first->second.synchronize();
        last->second.synchronize();
        const double milliseconds = first->second.elapsedTime(last->second);
        if (milliseconds < 0) return std::nullopt;
        return static_cast<std::int64_t>(milliseconds * 1e6);
    }

  private:
    c10::Device device_;
    std::map<Event, c10::Event> events_;
};

}  // namespace
}  // namespace dlprim_torch

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, dlprim_torch::Timer)
}
