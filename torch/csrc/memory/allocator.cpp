// SPDX-License-Identifier: MIT
// The allocator that PyTorch knows, and memory statistics as torch.accelerator reads them.
#include "device/devices.hpp"
#include "device/errors.hpp"
#include "memory/memory.hpp"

#include <c10/core/CachingDeviceAllocator.h>

namespace dlprim_torch {
namespace {

using Stats = c10::CachingDeviceAllocator::DeviceStats;

struct Allocator final : c10::DeviceAllocator {
    c10::DataPtr allocate(std::size_t bytes) override {
        const int device = current_device();
        TORCH_CHECK(device < device_count(), "There is no device \"ocl\". ", why());
        return Memory::make(device, bytes);
    }
    void copy_data(void*, const void*, std::size_t) const override {
        TORCH_CHECK_NOT_IMPLEMENTED(false,
                                    "Storages of \"ocl\" are copied as tensors, not by address.");
    }

    bool initialized() override { return device_count() > 0; }
    void emptyCache(c10::MempoolId_t) override { let_caches_go(); }
    void recordStream(const c10::DataPtr&, c10::Stream) override {}  // The queue is in order.
    Stats getDeviceStats(c10::DeviceIndex device) override {
        Stats stats;
        if (const std::optional<dp::Context> own = opened(device)) {
            const dp::MemoryUse use = own->memory();
            const auto set = [](auto& stat, std::uint64_t current, std::uint64_t peak) {
                stat.current = static_cast<std::int64_t>(current);
                stat.peak = static_cast<std::int64_t>(peak);
            };
            set(stats.allocated_bytes[0], use.live, use.peak_live);
            set(stats.active_bytes[0], use.live, use.peak_live);
            set(stats.reserved_bytes[0], use.reserved, use.peak_reserved);
            set(stats.inactive_split_bytes[0], use.cached, use.cached);
            stats.num_device_alloc = static_cast<std::int64_t>(own->counters().allocations);
        }
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex) override {}
    void resetPeakStats(c10::DeviceIndex device) override {
        if (const std::optional<dp::Context> own = opened(device)) own->reset_memory_peaks();
    }
    std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
        const dp::Context& own = context(device < 0 ? current_device() : device);
        const dp::MemoryUse use = own.memory();
        const std::size_t total = use.total,
                          used = use.reserved - std::min(use.reserved, use.cached);
        return {total - std::min(total, used), total};
    }
};

// Leaked: PyTorch keeps it for good.
[[maybe_unused]] const bool registered = [] {
    c10::SetAllocator(c10::DeviceType::PrivateUse1, new Allocator);
    return true;
}();

}  // namespace
}  // namespace dlprim_torch
