// SPDX-License-Identifier: MIT
// The hooks by which PyTorch asks for the accelerator "ocl": devices, generators, storages that
// grow.
#include "device/devices.hpp"
#include "device/generator.hpp"
#include "memory/memory.hpp"
#include "memory/pinned.hpp"

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace dlprim_torch {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return device_count() > 0; }
    bool hasPrimaryContext(c10::DeviceIndex device) const override {
        return opened(device).has_value();
    }
    void init() const override {}
    c10::DeviceIndex deviceCount() const override {
        return static_cast<c10::DeviceIndex>(device_count());
    }
    void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
    c10::DeviceIndex getCurrentDevice() const override {
        return static_cast<c10::DeviceIndex>(current_device());
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        const auto before = getCurrentDevice();
        set_current_device(device);
        return before;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        const auto before = getCurrentDevice();
        if (device >= 0 && device < device_count()) set_current_device_unchecked(device);
        return before;
    }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
        return default_generator(device);
    }
    at::Generator getNewGenerator(c10::DeviceIndex device) const override {
        return at::make_generator<Generator>(
            device < 0 ? static_cast<c10::DeviceIndex>(current_device()) : device);
    }
    at::Device getDeviceFromPtr(void* data) const override { return device_of_address(data); }
    bool isPinnedPtr(const void* data) const override { return pinned_block(data) != nullptr; }
    at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
    void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
        resize_storage(storage, bytes);
    }
};

[[maybe_unused]] const bool registered = [] {
    at::RegisterPrivateUse1HooksInterface(new Hooks);  // PyTorch keeps it for good
    return true;
}();

}  // namespace
}  // namespace dlprim_torch
