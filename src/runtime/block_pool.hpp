// SPDX-License-Identifier: MIT
// BlockPool: large pieces of device memory (segments) that are split into blocks. A freed block is
// merged with its free neighbours, so that memory of one size serves requests of another.
//
// The method is that of PyTorch's CUDACachingAllocator (c10/cuda): the smallest free block that
// fits is taken and split; small requests have segments of their own, so that they do not cut up
// large ones.
#pragma once

#include "runtime/buffer.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_set>
#include <vector>

namespace dlprim {

/// Any thread may call any member. Memory is made and counted by the caller.
class BlockPool {
  public:
    struct Segment;
    /// Bytes [offset, offset + bytes) of a segment. The pool owns it; who took it reads it.
    struct Block {
        Segment* segment = nullptr;
        std::uint64_t offset = 0, bytes = 0;
        bool free = false;
        Block *before = nullptr, *after = nullptr;  ///< neighbours in the segment
    };
    struct Segment {
        std::unique_ptr<Buffer> memory;
        std::uint64_t number = 0;  ///< in the order in which segments were made
        bool small = false;        ///< for requests of at most small_bytes
        Block* first = nullptr;
    };

    static constexpr std::uint64_t small_bytes = 1 << 20;  ///< the largest small request

    /// Blocks start at multiples of `alignment`, a power of two.
    explicit BlockPool(std::uint64_t alignment) : alignment_(alignment) {}
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    /// A request rounded up to the size of its block.
    std::uint64_t block_bytes(std::uint64_t bytes) const noexcept;
    /// The size of a new segment for a block of `block_bytes`, at most `most` where the block
    /// allows that.
    static std::uint64_t segment_bytes(std::uint64_t block_bytes, std::uint64_t most) noexcept;

    /// The smallest free block of at least `block_bytes`, split if much of it would be left over.
    /// nullptr if there is none. With `from_all`, a small request may use large segments, and the
    /// other way round.
    Block* take(std::uint64_t block_bytes, bool from_all = false);
    /// The same from a new segment, which has at least that many bytes.
    Block* take(std::uint64_t block_bytes, std::unique_ptr<Buffer> segment);
    /// Takes a block back.
    void give(Block* block);
    /// Removes all segments of which no block is in use. The caller destroys them.
    std::vector<std::unique_ptr<Buffer>> remove_free();

    /// Bytes in free blocks.
    std::uint64_t free_bytes() const;
    std::size_t segments() const;

  private:
    struct Smaller {
        bool operator()(const Block* a, const Block* b) const noexcept;
    };
    using FreeBlocks = std::set<Block*, Smaller>;
    FreeBlocks& free_blocks(const Segment& segment) { return segment.small ? small_ : large_; }
    Block* take_from(FreeBlocks& blocks, std::uint64_t block_bytes);
    Block* cut(Block* block, std::uint64_t block_bytes);
    void insert(Block* block);  ///< into the set of free blocks
    void remove(Block* block);  ///< from it
    void join_with_next(Block* block);

    const std::uint64_t alignment_;
    mutable std::mutex mutex_;
    std::unordered_set<std::unique_ptr<Segment>> segments_;
    FreeBlocks small_, large_;
    std::uint64_t free_bytes_ = 0, made_ = 0;
};

}  // namespace dlprim
