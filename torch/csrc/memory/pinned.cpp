// SPDX-License-Identifier: MIT
// See pinned.hpp. A driver takes some 100 us for a new block, so that blocks are used again.
#include "memory/pinned.hpp"

#include "device/devices.hpp"
#include "device/errors.hpp"
#include "memory/memory.hpp"

#include <ATen/EmptyTensor.h>
#include <dlprim/pinned.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace dlprim_torch {
namespace {

using Share = std::shared_ptr<dp::PinnedMemory>;

class Pool {
  public:
    Share take(int device, std::size_t bytes) {
        const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, 512));
        dp::PinnedMemory memory = kept(device, size);
        if (memory.data() == nullptr) {
            const dp::Context& own = context(device);
            memory = translated([&] { return dp::PinnedMemory(own, size); });
        }
        Share share(new dp::PinnedMemory(std::move(memory)),
                    [this, device](dp::PinnedMemory* block) { put_back(device, block); });
        const std::lock_guard lock(mutex_);
        owned_[number(share->data())] = {share, size};
        return share;
    }

    Share owner(const void* address) {
        const std::lock_guard lock(mutex_);
        auto found = owned_.upper_bound(number(address));
        if (found == owned_.begin()) return nullptr;
        const Owned& block = (--found)->second;
        return number(address) - found->first < block.bytes ? block.share.lock() : nullptr;
    }

    std::map<std::pair<int, std::size_t>, std::vector<dp::PinnedMemory>> all_kept() {
        const std::lock_guard lock(mutex_);
        return std::exchange(kept_, {});
    }

  private:
    struct Owned {
        std::weak_ptr<dp::PinnedMemory> share;
        std::size_t bytes;
    };

    dp::PinnedMemory kept(int device, std::size_t size) {
        check_process();
        const std::lock_guard lock(mutex_);
        std::vector<dp::PinnedMemory>& blocks = kept_[{device, size}];
        if (blocks.empty()) return {};
        dp::PinnedMemory memory = std::move(blocks.back());
        blocks.pop_back();
        return memory;
    }

    void put_back(int device, dp::PinnedMemory* block) {
        const std::unique_ptr<dp::PinnedMemory> own(block);
        const std::lock_guard lock(mutex_);
        owned_.erase(number(block->data()));
        kept_[{device, block->bytes()}].push_back(std::move(*block));
    }

    std::mutex mutex_;
    std::map<std::uintptr_t, Owned> owned_;  // by address
    std::map<std::pair<int, std::size_t>, std::vector<dp::PinnedMemory>> kept_;
};

// Leaked: tensors may outlive static objects, and drivers may be gone at exit.
Pool& pool() {
    static auto* const made = new Pool;
    return *made;
}

void let_go(void* share) {
    delete static_cast<Share*>(share);
}

struct PinnedAllocator final : c10::Allocator {
    c10::DataPtr allocate(std::size_t bytes) override {
        auto share = std::make_unique<Share>(pool().take(current_device(), bytes));
        void* const data = (*share)->data();
        return {data, share.release(), &let_go, c10::Device(c10::DeviceType::CPU)};
    }
    void copy_data(void* target, const void* source, std::size_t bytes) const override {
        default_copy_data(target, source, bytes);
    }
};

}  // namespace

at::Allocator* pinned_allocator() noexcept {
    static auto* const allocator = new PinnedAllocator;
    return allocator;
}

at::Tensor pinned_bytes(std::int64_t count) {
    return at::detail::empty_generic({count}, pinned_allocator(),
                                     c10::DispatchKeySet(c10::DispatchKey::CPU), at::kByte,
                                     std::nullopt);
}

std::shared_ptr<void> pinned_block(const void* address) noexcept {
    return pool().owner(address);
}

void pinned_cache_go() noexcept {
    auto kept = pool().all_kept();
    // Drivers do not survive a fork, nor the process's end.
    if (!may_free()) new decltype(kept)(std::move(kept));  // NOLINT: leaked on purpose
}

}  // namespace dlprim_torch
