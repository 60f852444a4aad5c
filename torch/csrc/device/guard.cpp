// SPDX-License-Identifier: MIT
// The device guard: current device, streams and events of "ocl".
//
// A device has one in-order queue, so every stream is that queue: stream ids differ, and the order
// of work is stricter than a program asks for.
#include "device/devices.hpp"
#include "device/errors.hpp"
#include "device/streams.hpp"
#include "device/workers.hpp"

#include <dlprim/event.hpp>

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace dlprim_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
    Device getDevice() const override {
        return {type(), static_cast<DeviceIndex>(current_device())};
    }
    Device exchangeDevice(Device device) const override {
        const Device before = getDevice();
        if (device.has_index() && device != before) set_current_device(device.index());
        return before;
    }
    void setDevice(Device device) const override {
        if (!device.has_index()) return;
        set_current_device(device.index());
        note_worker(device.index());
    }
    void uncheckedSetDevice(Device device) const noexcept override {
        if (device.has_index()) set_current_device_unchecked(device.index());
    }
    DeviceIndex deviceCount() const noexcept override {
        return static_cast<DeviceIndex>(device_count());
    }

    Stream getStream(Device device) const override { return current_stream(indexed(device)); }
    Stream getDefaultStream(Device device) const override {
        return Stream(Stream::DEFAULT, indexed(device));
    }
    Stream getNewStream(Device device, int) const override { return new_stream(indexed(device)); }
    Stream getStreamFromGlobalPool(Device device, bool) const override {
        return new_stream(indexed(device));
    }
    Stream exchangeStream(Stream stream) const override { return exchange_stream(stream); }
    bool queryStream(const Stream& stream) const override {
        const std::optional<dp::Context> own = opened(stream.device_index());
        return !own || translated([&] { return dp::Event(*own).done(); });
    }
    void synchronizeStream(const Stream& stream) const override {
        synchronize(stream.device_index());
    }
    void synchronizeDevice(const DeviceIndex device) const override { synchronize(device); }

    void record(void** event, const Stream& stream, const DeviceIndex,
                const c10::EventFlag flag) const override {
        record_event(event, stream.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT);
    }
    void block(void*, const Stream&) const override {}  // The queue is in order.
    bool queryEvent(void* event) const override { return event_done(event); }
    void synchronizeEvent(void* event) const override { wait_for_event(event); }
    double elapsedTime(void* from, void* to, const DeviceIndex) const override {
        return milliseconds_between(from, to);
    }
    void destroyEvent(void* event, const DeviceIndex) const noexcept override {
        delete_event(event);
    }

  private:
    Device indexed(Device device) const { return device.has_index() ? device : getDevice(); }
};

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace dlprim_torch
