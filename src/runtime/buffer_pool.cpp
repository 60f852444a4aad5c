// SPDX-License-Identifier: MIT
// BufferPool: freed buffers by size class.
#include "runtime/buffer_pool.hpp"

#include <bit>

namespace dlprim {

std::uint64_t size_class(std::uint64_t bytes) noexcept {
    if (bytes <= 256) return 256;
    const std::uint64_t power = std::bit_floor(bytes);
    if (bytes == power) return power;
    return bytes <= power + power / 2 ? power + power / 2 : power * 2;
}

std::unique_ptr<Buffer> BufferPool::take(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(bytes);
    if (found == kept_.end() || found->second.empty()) return nullptr;
    std::unique_ptr<Buffer> buffer = std::move(found->second.back());
    found->second.pop_back();
    return buffer;
}

void BufferPool::keep(std::unique_ptr<Buffer> buffer) {
    const std::lock_guard lock(mutex_);
    kept_[buffer->bytes()].push_back(std::move(buffer));
}

bool BufferPool::clear() {
    std::map<std::uint64_t, std::vector<std::unique_ptr<Buffer>>> released;
    {
        const std::lock_guard lock(mutex_);
        released.swap(kept_);
    }
    for (const auto& [bytes, buffers] : released)
        if (!buffers.empty()) return true;
    return false;
}

}  // namespace dlprim
