// SPDX-License-Identifier: MIT
// BlockPool against a naive model: no two blocks overlap, all are aligned, and all are one again in
// the end. Contexts above it: limits, what is cached and let go, and memory that a program holds.
#include "runtime/block_pool.hpp"

#include "net/support.hpp"
#include "runtime/context_impl.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/threads.hpp"

#include <dlprim/opencl.hpp>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

using namespace dlprim;

namespace {

constexpr std::uint64_t mib = 1 << 20, alignment = 512;

class NoMemory : public Buffer {
  public:
    explicit NoMemory(std::uint64_t bytes) : Buffer(bytes, nullptr, nullptr) {}
};

/// What is in use: by segment and offset, the end.
using Model = std::map<std::pair<const void*, std::uint64_t>, std::uint64_t>;

bool overlaps(const Model& model, const BlockPool::Block& block) {
    const auto next = model.lower_bound({block.segment, block.offset});
    if (next != model.end() && next->first.first == block.segment &&
        next->first.second < block.offset + block.bytes)
        return true;
    if (next == model.begin()) return false;
    const auto before = std::prev(next);
    return before->first.first == block.segment && before->second > block.offset;
}

/// A tensor of almost that size: AddressSanitizer wants some bytes behind each.
Tensor tensor_of(const Context& context, std::int64_t size) {
    return {context, {(size * 1024 - 4) * 256}};
}
constexpr std::uint64_t short_of = 4096;

/// Sizes as programs have them: many small ones, some of many MiB.
std::uint64_t some_bytes(std::mt19937& random) {
    const int bits = std::uniform_int_distribution<int>(0, 25)(random);
    return std::uniform_int_distribution<std::uint64_t>(0, std::uint64_t{2} << bits)(random);
}

}  // namespace

TEST_CASE("blocks never overlap, and are one again in the end", "[memory]") {
    for (const unsigned seed : {1u, 2u, 3u}) {
        std::mt19937 random(seed);
        BlockPool pool(alignment);
        Model model;
        std::vector<BlockPool::Block*> used;
        std::uint64_t reserved = 0, in_use = 0;
        const std::uint64_t most = seed == 3 ? 5 * mib : 1000 * mib;
        bool right = true;
        for (int i = 0; i < 20000; ++i) {
            const bool more = std::uniform_int_distribution<std::size_t>(0, 200)(random) >
                              std::min<std::size_t>(used.size(), 190);
            if (more) {
                const std::uint64_t wanted = some_bytes(random) % most;
                const std::uint64_t bytes = pool.block_bytes(wanted);
                BlockPool::Block* block = pool.take(bytes);
                if (block == nullptr) {
                    const std::uint64_t made = BlockPool::segment_bytes(bytes, most);
                    reserved += made;
                    block = pool.take(bytes, std::make_unique<NoMemory>(made));
                }
                right = right && block->bytes >= wanted && block->offset % alignment == 0 &&
                        block->offset + block->bytes <= block->segment->memory->bytes() &&
                        !overlaps(model, *block) &&
                        block->segment->small == (bytes <= BlockPool::small_bytes);
                model[{block->segment, block->offset}] = block->offset + block->bytes;
                in_use += block->bytes;
                used.push_back(block);
            } else if (!used.empty()) {
                std::swap(used[random() % used.size()], used.back());
                model.erase({used.back()->segment, used.back()->offset});
                in_use -= used.back()->bytes;
                pool.give(used.back());
                used.pop_back();
            }
            right = right && pool.free_bytes() == reserved - in_use;
            if (i % 1000 == 999)
                for (const auto& removed : pool.remove_free()) reserved -= removed->bytes();
            if (!right) break;
        }
        CHECK(right);
        for (BlockPool::Block* block : used) pool.give(block);
        CHECK(pool.free_bytes() == reserved);
        // Each segment is one free block, or it would not be removed.
        for (const auto& removed : pool.remove_free()) reserved -= removed->bytes();
        CHECK(reserved == 0);
        CHECK(pool.segments() == 0);
    }
}

TEST_CASE("memory of one size serves requests of another", "[memory]") {
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        { const Tensor x = tensor_of(own, 12); }
        const std::uint64_t before = own.counters().allocations;
        const MemoryUse kept = own.memory();
        CHECK(kept.live == 0);
        CHECK(kept.cached == 12 * mib);
        CHECK(kept.reserved == 12 * mib);
        CHECK(kept.peak_live == 12 * mib - short_of);
        {
            const Tensor a = tensor_of(own, 4), b = tensor_of(own, 4), c = tensor_of(own, 4);
            CHECK(own.counters().allocations == before);
            CHECK(own.memory().live == 12 * mib - 3 * short_of);
            CHECK(own.memory().cached == 0);
            CHECK(own.memory().reserved == 12 * mib);
        }
        { const Tensor x = tensor_of(own, 12); }
        CHECK(own.counters().allocations == before);
        own.reset_memory_peaks();
        CHECK(own.memory().peak_live == 0);
        CHECK(own.memory().peak_reserved == 12 * mib);
        CHECK(own.release_cached() == 12 * mib);
        CHECK(own.memory().reserved == 0);
    }
}

TEST_CASE("small tensors share memory, and each keeps its values", "[memory]") {
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        std::vector<Tensor> tensors;
        std::mt19937 random(5);
        const auto values = [](int i, std::int64_t count) {
            return std::vector<float>(static_cast<std::size_t>(count), static_cast<float>(i));
        };
        for (int i = 0; i < 300; ++i) {
            const auto count = static_cast<std::int64_t>(random() % 3000);
            tensors.emplace_back(own, Shape{count}, values(i, count));
            if (i % 3 == 0) tensors[static_cast<std::size_t>(i / 2)] = Tensor();
        }
        CHECK(own.counters().allocations < 5);
        bool right = true;
        for (int i = 0; i < 300; ++i) {
            const Tensor& x = tensors[static_cast<std::size_t>(i)];
            if (x.defined()) right = right && x.to_floats() == values(i, x.shape().numel());
        }
        CHECK(right);
    }
}

TEST_CASE("threads allocate and free at the same time", "[memory]") {
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        std::atomic<bool> right{true};
        testing::in_threads(4, [&](std::size_t thread) {
            const int t = static_cast<int>(thread);
            std::mt19937 random(static_cast<unsigned>(t));
            std::vector<Tensor> kept(8);
            for (int i = 0; i < 200; ++i) {
                Tensor& x = kept[random() % kept.size()];
                x = Tensor(own, {static_cast<std::int64_t>(random() % 5000 + 1)});
                x.fill(t * 1000 + i);
                if (i % 20 != 0) continue;
                for (const float value : x.to_floats())
                    if (value != static_cast<float>(t * 1000 + i)) right = false;
            }
        });
        CHECK(right);
        CHECK(own.memory().live == 0);
    }
}

TEST_CASE("out of memory: what is cached is let go first, then the error says what is used",
          "[memory]") {
    const testing::Variable limits("DLPRIM_TRAITS", "global_mib=64,max_alloc_mib=32");
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        CHECK(own.memory().total == 64 * mib);
        CHECK(own.memory().largest_allocation == 32 * mib);
        const auto tensor = [&](std::int64_t size) { return tensor_of(own, size); };
        // Cached blocks of a size that does not fit the next request are given back.
        for (int i = 0; i < 4; ++i) {
            { const Tensor a = tensor(30), b = tensor(30); }
            { const Tensor a = tensor(32), b = tensor(32); }
        }
        // As much as there is, also where segments would usually be larger than what is needed.
        {
            const Tensor a = tensor(31), b = tensor(30), c = tensor(2);
            CHECK(own.memory().live == 63 * mib - 3 * short_of);
        }
        std::vector<Tensor> held{tensor(30)};
        { const Tensor cached = tensor(3); }
        try {
            held.push_back(tensor(32));
            held.push_back(tensor(16));
            FAIL("more memory than there is");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::out_of_memory);
            const std::string text = error.what();
            CHECK(text.find("cannot allocate 16.0 MiB") != std::string::npos);
            CHECK(text.find("62.0 MiB are in use") != std::string::npos);
            CHECK(text.find("were cached") != std::string::npos);
        }
        held.clear();
        held.push_back(tensor(16));
        CHECK(own.memory().live == 16 * mib - short_of);
        CHECK_THROWS_AS(tensor(33), Error);
    }
}

TEST_CASE("memory that a program holds is not given to others", "[memory]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Context own(device.info().id);
        const std::vector<float> ones(1000, 1.0f);
        Tensor seen;
        {
            const Tensor x(own, {1000}, ones);
            const Tensor between(own, {1000}, std::vector<float>(1000, 3.0f));
            const Tensor y(own, {1000}, std::vector<float>(1000, 2.0f));
            const opencl::Memory place = opencl::memory(y);
            CHECK(place.byte_offset % own.traits().base_align_bytes == 0);
            seen = Tensor::wrap_opencl(own, place.memory, place.byte_offset, {1000});
        }
        for (int i = 0; i < 5; ++i) {
            std::vector<Tensor> others;
            for (int j = 0; j < 20; ++j) others.emplace_back(own, Shape{1000}, ones);
        }
        CHECK(seen.to_floats() == std::vector<float>(1000, 2.0f));
        seen = Tensor();
        own.release_cached();
        CHECK(own.memory().reserved == 0);
    }
}
