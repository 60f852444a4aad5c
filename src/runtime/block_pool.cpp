// SPDX-License-Identifier: MIT
// BlockPool: best fit over two sets of free blocks, ordered by size.
#include "runtime/block_pool.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dlprim {

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t small_segment = 2 * mib;
// Requests from 1 to 10 MiB share segments of 20 MiB. Larger ones get a segment of their own size.
constexpr std::uint64_t medium_bytes = 10 * mib, medium_segment = 20 * mib;
constexpr std::uint64_t large_step = 2 * mib;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) noexcept {
    return (bytes + step - 1) / step * step;
}

}  // namespace

BlockPool::~BlockPool() {
    for (const auto& segment : segments_)
        for (Block* block = segment->first; block != nullptr;)
            delete std::exchange(block, block->after);
}

bool BlockPool::Smaller::operator()(const Block* a, const Block* b) const noexcept {
    // Among blocks of one size the oldest memory comes first, so that the newest segments become
    // free as a whole.
    return std::tuple(a->bytes, a->segment->number, a->offset) <
           std::tuple(b->bytes, b->segment->number, b->offset);
}

std::uint64_t BlockPool::block_bytes(std::uint64_t bytes) const noexcept {
    return rounded_up(std::max<std::uint64_t>(bytes, 1), alignment_);
}

std::uint64_t BlockPool::segment_bytes(std::uint64_t block_bytes, std::uint64_t most) noexcept {
    const std::uint64_t wanted = block_bytes <= small_bytes   ? small_segment
                                 : block_bytes < medium_bytes ? medium_segment
                                                              : rounded_up(block_bytes, large_step);
    return std::max(block_bytes, std::min(wanted, most));
}

void BlockPool::insert(Block* block) {
    block->free = true;
    free_bytes_ += block->bytes;
    free_blocks(*block->segment).insert(block);
}

void BlockPool::remove(Block* block) {
    free_blocks(*block->segment).erase(block);
    free_bytes_ -= block->bytes;
    block->free = false;
}

BlockPool::Block* BlockPool::cut(Block* block, std::uint64_t block_bytes) {
    const std::uint64_t left = block->bytes - block_bytes;
    // What small requests cannot use of a large segment stays with the block.
    if (left < alignment_ || (!block->segment->small && left <= small_bytes)) return block;
    auto* const rest =
        new Block{block->segment, block->offset + block_bytes, left, false, block, block->after};
    if (rest->after != nullptr) rest->after->before = rest;
    block->after = rest;
    block->bytes = block_bytes;
    insert(rest);
    return block;
}

BlockPool::Block* BlockPool::take_from(FreeBlocks& blocks, std::uint64_t block_bytes) {
    Segment any;
    Block wanted{&any, 0, block_bytes};
    const auto found = blocks.lower_bound(&wanted);
    if (found == blocks.end()) return nullptr;
    Block* const block = *found;
    remove(block);
    return cut(block, block_bytes);
}

BlockPool::Block* BlockPool::take(std::uint64_t block_bytes, bool from_all) {
    const std::lock_guard lock(mutex_);
    const bool small = block_bytes <= small_bytes;
    Block* block = take_from(small ? small_ : large_, block_bytes);
    if (block == nullptr && from_all) block = take_from(small ? large_ : small_, block_bytes);
    return block;
}

BlockPool::Block* BlockPool::take(std::uint64_t block_bytes, std::unique_ptr<Buffer> memory) {
    const std::lock_guard lock(mutex_);
    auto segment = std::make_unique<Segment>();
    segment->number = ++made_;
    segment->small = block_bytes <= small_bytes;
    segment->first = new Block{segment.get(), 0, memory->bytes()};
    segment->memory = std::move(memory);
    Block* const block = segment->first;
    segments_.insert(std::move(segment));
    return cut(block, block_bytes);
}

void BlockPool::join_with_next(Block* block) {
    Block* const next = block->after;
    block->bytes += next->bytes;
    block->after = next->after;
    if (block->after != nullptr) block->after->before = block;
    delete next;
}

void BlockPool::give(Block* block) {
    const std::lock_guard lock(mutex_);
    if (block->after != nullptr && block->after->free) {
        remove(block->after);
        join_with_next(block);
    }
    if (Block* const before = block->before; before != nullptr && before->free) {
        remove(before);
        join_with_next(before);
        block = before;
    }
    insert(block);
}

std::vector<std::unique_ptr<Buffer>> BlockPool::remove_free() {
    const std::lock_guard lock(mutex_);
    std::vector<std::unique_ptr<Buffer>> removed;
    for (auto segment = segments_.begin(); segment != segments_.end();) {
        Block* const first = (*segment)->first;
        if (!first->free || first->after != nullptr) {
            ++segment;
            continue;
        }
        remove(first);
        removed.push_back(std::move((*segment)->memory));
        delete first;
        segment = segments_.erase(segment);
    }
    return removed;
}

std::uint64_t BlockPool::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return free_bytes_;
}

std::size_t BlockPool::segments() const {
    const std::lock_guard lock(mutex_);
    return segments_.size();
}

}  // namespace dlprim
