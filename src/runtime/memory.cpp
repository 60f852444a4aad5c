// SPDX-License-Identifier: MIT
// Allocation: limits are checked first, and memory that is kept is let go before one fails.
#include "runtime/memory.hpp"

#include "base/text.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"

#include <algorithm>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DLPRIM_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define DLPRIM_ADDRESS_SANITIZER 1
#endif
#ifdef DLPRIM_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dlprim {
namespace {

// Of blocks: what PyTorch's allocators use, and what AVX-512 and a GPU's transactions want.
constexpr std::uint64_t least_alignment = 512;

std::string mib(std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes * 10 + (1u << 19)) >> 20;
    return bytes < (1u << 20) ? cat(bytes, " bytes") : cat(tenths / 10, ".", tenths % 10, " MiB");
}

// AddressSanitizer sees accesses to blocks that are not in use, and beyond the end of one that is.
#ifdef DLPRIM_ADDRESS_SANITIZER
constexpr std::uint64_t red_zone = 64;
void forbid(const BlockPool::Block& block) {
    std::byte* const host = block.segment->memory->host();
    if (host != nullptr) ASAN_POISON_MEMORY_REGION(host + block.offset, block.bytes);
}
void permit(const BlockPool::Block& block, std::uint64_t bytes) {
    std::byte* const host = block.segment->memory->host();
    if (host == nullptr) return;
    forbid(block);
    ASAN_UNPOISON_MEMORY_REGION(host + block.offset, bytes);
}
void permit_all(const Buffer& segment) {
    if (segment.host() != nullptr) ASAN_UNPOISON_MEMORY_REGION(segment.host(), segment.bytes());
}
#else
constexpr std::uint64_t red_zone = 0;
void forbid(const BlockPool::Block&) {}
void permit(const BlockPool::Block&, std::uint64_t) {}
void permit_all(const Buffer&) {}
#endif

}  // namespace

void Gauge::add(std::uint64_t bytes) noexcept {
    const std::uint64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
}

/// A block of the pool, which gets it back in the end. It keeps the context, so that memory never
/// outlives its device.
class PooledBuffer final : public Buffer {
  public:
    PooledBuffer(std::shared_ptr<PooledContext> home, BlockPool::Block* block, std::uint64_t bytes)
        : Buffer(*block->segment->memory, block->offset, bytes),
          home_(std::move(home)),
          block_(block) {}
    PooledBuffer(const PooledBuffer&) = delete;
    PooledBuffer& operator=(const PooledBuffer&) = delete;
    ~PooledBuffer() override { home_->give_back(block_, bytes(), foreign()); }

  private:
    std::shared_ptr<PooledContext> home_;
    BlockPool::Block* block_;
};

BlockPool& PooledContext::blocks() {
    // Not in the constructor: traits are known only after it.
    std::call_once(pool_made_, [this] {
        pool_ = std::make_unique<BlockPool>(std::max(least_alignment, traits().base_align_bytes));
    });
    return *pool_;
}

void PooledContext::started(std::uint64_t bytes) noexcept {
    live_.add(bytes);
    count_live(counters_.allocated_bytes, bytes);
}

void PooledContext::ended(std::uint64_t bytes) noexcept {
    live_.remove(bytes);
    uncount(counters_.allocated_bytes, bytes);
}

void PooledContext::refuse(std::uint64_t bytes, std::uint64_t cached, const char* why) {
    fail(ErrorKind::out_of_memory, "device ", info().str(), " cannot allocate ", mib(bytes), ": ",
         why, "; ", mib(live_.now()), " are in use by this context and ", mib(cached),
         " were cached by it, its largest single allocation is ", mib(traits().max_alloc_bytes),
         ", its memory ", mib(traits().global_bytes),
         "; smaller batches, or freeing tensors and nets first, would help");
}

// Drivers often promise memory that they do not have and fail at its first use. So the sum is
// checked here.
bool PooledContext::fits(std::uint64_t bytes) const noexcept {
    return bytes <= traits().max_alloc_bytes && reserved_.now() <= traits().global_bytes &&
           bytes <= traits().global_bytes - reserved_.now();
}

std::unique_ptr<Buffer> PooledContext::try_buffer(std::uint64_t bytes) {
    std::unique_ptr<Buffer> buffer = fits(bytes) ? make_buffer(bytes) : nullptr;
    if (buffer) count(counters_.allocations);
    return buffer;
}

std::shared_ptr<Buffer> PooledContext::allocate(std::uint64_t bytes) {
    const std::uint64_t wanted = std::max(bytes, traits().base_align_bytes);
    if (wanted > traits().max_alloc_bytes)
        refuse(wanted, memory().cached, "a single allocation cannot be so large");
    std::unique_ptr<Buffer> buffer = try_buffer(wanted);
    if (!buffer) {
        const std::uint64_t cached = trim();
        const bool room = fits(wanted);
        buffer = try_buffer(wanted);
        if (!buffer)
            refuse(wanted, cached,
                   room ? "the driver refuses the allocation" : "not enough memory is left");
    }
    started(wanted);
    return {buffer.release(), [self = shared_from_this(), wanted](Buffer* freed) {
                delete freed;
                self->ended(wanted);
            }};
}

BlockPool::Block* PooledContext::new_segment(std::uint64_t block_bytes, bool sparing) {
    const std::uint64_t wanted =
        sparing ? block_bytes : BlockPool::segment_bytes(block_bytes, traits().max_alloc_bytes);
    std::unique_ptr<Buffer> memory = try_buffer(wanted);
    return memory ? blocks().take(block_bytes, std::move(memory)) : nullptr;
}

std::shared_ptr<Buffer> PooledContext::allocate_cached(std::uint64_t bytes) {
    const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 1);
    if (wanted > traits().max_alloc_bytes)
        refuse(wanted, memory().cached, "a single allocation cannot be so large");
    // A block may not be larger than an allocation, where the last bytes are no whole unit.
    const std::uint64_t size =
        std::min(blocks().block_bytes(wanted + red_zone), traits().max_alloc_bytes);
    BlockPool::Block* block = blocks().take(size);
    if (block == nullptr && any_exported_) {
        take_back_exported();
        block = blocks().take(size);
    }
    if (block == nullptr) block = new_segment(size, false);
    if (block == nullptr) {
        const std::uint64_t cached = trim();
        block = new_segment(size, false);
        if (block == nullptr) block = new_segment(size, true);
        if (block == nullptr) block = blocks().take(size, true);
        if (block == nullptr)
            refuse(wanted, cached,
                   fits(size) ? "the driver refuses the allocation"
                              : "not enough memory is left in one piece");
    }
    permit(*block, wanted);
    started(wanted);
    return std::make_shared<PooledBuffer>(shared_from_this(), block, wanted);
}

void PooledContext::give_back(BlockPool::Block* block, std::uint64_t bytes, bool exported) {
    ended(bytes);
    forbid(*block);
    if (exported && held_elsewhere(*block->segment->memory)) {
        const std::lock_guard lock(exported_mutex_);
        exported_.push_back(block);
        any_exported_ = true;
        return;
    }
    blocks().give(block);
}

void PooledContext::take_back_exported() {
    const std::lock_guard lock(exported_mutex_);
    const auto held = std::partition(
        exported_.begin(), exported_.end(),
        [this](const BlockPool::Block* block) { return held_elsewhere(*block->segment->memory); });
    std::for_each(held, exported_.end(), [this](BlockPool::Block* block) { blocks().give(block); });
    exported_.erase(held, exported_.end());
    any_exported_ = !exported_.empty();
}

std::uint64_t PooledContext::trim() {
    // Memory of which the device still reads something is freed when that is done.
    drain();
    take_back_exported();
    const std::uint64_t cached = blocks().free_bytes();
    for (const std::unique_ptr<Buffer>& segment : blocks().remove_free()) permit_all(*segment);
    return cached;
}

void PooledContext::destroy_pool() {
    if (pool_)
        for (const std::unique_ptr<Buffer>& segment : pool_->remove_free()) permit_all(*segment);
    pool_.reset();
}

MemoryUse PooledContext::memory() {
    MemoryUse use;
    use.live = live_.now();
    use.cached = blocks().free_bytes();
    use.reserved = reserved_.now();
    use.peak_live = live_.peak();
    use.peak_reserved = reserved_.peak();
    use.largest_allocation = traits().max_alloc_bytes;
    use.total = traits().global_bytes;
    return use;
}

void PooledContext::reset_memory_peaks() {
    live_.reset_peak();
    reserved_.reset_peak();
}

HostPool& PooledContext::pool() {
    return shared_pool();
}

}  // namespace dlprim
