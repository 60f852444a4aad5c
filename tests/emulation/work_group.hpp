// SPDX-License-Identifier: MIT
// A work-group of an OpenCL kernel as coroutines on the host, with what kernels for NVIDIA's Hopper
// have as inline PTX: asynchronous copies, shuffles, and warpgroup matrix products
// over tiles in local memory that are named by descriptors. Enough to run the kernels that
// translate.py names, slowly, where there is no such device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ucontext.h>

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
struct uint2 {
    uint x, y;
};
struct uint4 {
    uint x, y, z, w;
};
struct int2 {
    int x, y;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
    float4& operator+=(const float4& other) {
        x += other.x;
        y += other.y;
        z += other.z;
        w += other.w;
        return *this;
    }
};
inline float4 vload4(int, const float* from) {
    return {from[0], from[1], from[2], from[3]};
}

constexpr std::size_t local_bytes = 227 << 10;
struct WorkGroup {
    alignas(1024) uchar local[local_bytes];
    std::size_t used = 0;
    std::map<std::string, std::size_t> arrays;
    std::vector<uint> exchange;
};
inline WorkGroup work_group;
inline int group_id[2], group_count[2];
inline int local_id;

inline int get_local_id(int) {
    return local_id;
}
inline int get_group_id(int dimension) {
    return group_id[dimension];
}
inline int get_num_groups(int dimension) {
    return group_count[dimension];
}
inline int items_of_group;
inline long get_global_id(int dimension) {
    return static_cast<long>(group_id[dimension]) * items_of_group + local_id;
}
enum { CLK_LOCAL_MEM_FENCE };

// Work-items take turns: each runs to its next barrier.
struct WorkItem {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done;
};
constexpr std::size_t stack_bytes = 256 << 10;
inline std::vector<WorkItem> work_items;
inline ucontext_t turns;
inline const std::function<void()>* running;
inline void barrier(int) {
    const auto mine = static_cast<std::size_t>(local_id);
    swapcontext(&work_items[mine].context, &turns);
}
inline void run_item() {
    const auto mine = static_cast<std::size_t>(local_id);
    (*running)();
    work_items[mine].done = true;
}

inline void* local_array(const char* name, std::size_t bytes) {
    const auto [array, fresh] =
        work_group.arrays.try_emplace(name, (work_group.used + 1023) / 1024 * 1024);
    if (fresh) work_group.used = array->second + bytes;
    if (work_group.used > local_bytes) std::abort();
    return work_group.local + array->second;
}
inline uint local_address(const void* at) {
    return static_cast<uint>(static_cast<const uchar*>(at) - work_group.local);
}

inline uint as_uint(float v) {
    uint bits;
    std::memcpy(&bits, &v, 4);
    return bits;
}
inline float as_float(uint bits) {
    float v;
    std::memcpy(&v, &bits, 4);
    return v;
}
inline uint max(uint a, uint b) {
    return std::max(a, b);
}
inline int max(int a, int b) {
    return std::max(a, b);
}
inline int min(int a, int b) {
    return std::min(a, b);
}

// To the nearest half, ties to even; beyond the largest to infinity.
inline uint half_of(float v) {
    const uint sign = as_uint(v) >> 16 & 0x8000;
    const double size = std::fabs(static_cast<double>(v));
    if (!(size < 65520)) return sign | 0x7c00;
    const int exponent = size < 6.103515625e-05 ? -14 : std::ilogb(size);
    const auto mantissa = static_cast<uint>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return sign | ((static_cast<uint>(exponent + 14) << 10) + mantissa);
}
inline float float_of(uint half) {
    const int exponent = static_cast<int>(half >> 10 & 31);
    const double size = exponent == 31  ? INFINITY
                        : exponent == 0 ? std::ldexp(half & 1023, -24)
                                        : std::ldexp((half & 1023) + 1024, exponent - 25);
    return static_cast<float>(half & 0x8000 ? -size : size);
}
inline uint bfloat_of(float v) {
    const uint bits = as_uint(v);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline float float_of_kind(uint bits, int kind) {
    if (kind == 2) return as_float(bits << 16);
    static const std::vector<float> halves = [] {
        std::vector<float> all;
        for (uint i = 0; i < 65536; ++i) all.push_back(float_of(i));
        return all;
    }();
    return halves[bits];
}
inline uint pack_half(float low, float high) {
    return half_of(low) | half_of(high) << 16;
}
inline uint pack_bfloat(float low, float high) {
    return bfloat_of(low) | bfloat_of(high) << 16;
}
inline uint split_pack(float low, float high) {
    return half_of(low) | half_of(high) << 16;
}
#define SPLIT_UNPACK(pair, low, high)  \
    {                                  \
        low = float_of((pair)&0xffff); \
        high = float_of((pair) >> 16); \
    }

inline uint exchanged(uint v, int with) {
    work_group.exchange[static_cast<std::size_t>(local_id)] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint other = work_group.exchange[static_cast<std::size_t>(with)];
    barrier(CLK_LOCAL_MEM_FENCE);
    return other;
}
#define SHUFFLE_XOR(other, v, by) other = exchanged(v, local_id ^ (by));

/// Devices refuse an address that is no multiple of the size, whatever of it is read.
inline void copy_part(uint to, const void* from, uint bytes, uint read) {
    if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0 || to % bytes != 0) std::abort();
    std::memset(work_group.local + to, 0, bytes);
    if (read > 0) std::memcpy(work_group.local + to, from, read);
}
#define COPY_16(to, from) copy_part(to, from, 16, 16);
#define COPY_16_OF(to, from, size) copy_part(to, from, 16, size);
#define COPY_16_SHARED_OF(to, from, size) copy_part(to, from, 16, size);
#define COPY_4_OF(to, from, size) copy_part(to, from, 4, size);
#define COPY_COMMIT
#define COPY_WAIT

// Copies and products of kernels on wgmma_half.clh happen as early, or as late, as the device may
// do them: at once, or when somebody waits for them.
inline bool late_copies, late_products;
template <class Action>
class Deferred {
  public:
    void add(bool late, Action action) {
        if (late)
            open_.push_back(std::move(action));
        else
            action();
    }
    void commit() {
        closed_.push_back(std::move(open_));
        open_.clear();
    }
    /// All but the last `but` groups are done.
    void wait(std::size_t but) {
        while (closed_.size() > but) {
            for (const Action& action : closed_.front()) action();
            closed_.erase(closed_.begin());
        }
    }
    bool empty() const {
        return open_.empty() && std::all_of(closed_.begin(), closed_.end(),
                                            [](const auto& group) { return group.empty(); });
    }

  private:
    std::vector<Action> open_;
    std::vector<std::vector<Action>> closed_;
};
inline std::vector<Deferred<std::function<void()>>> copies, products;  // by work-item
#define copies_ahead copies[static_cast<std::size_t>(local_id)]
#define products_ahead products[static_cast<std::size_t>(local_id)]
inline void copy_ahead(uint to, const void* from, uint read) {
    copies_ahead.add(late_copies, [=] { copy_part(to, from, 16, read); });
}
#define HALF_COPY(to, from) copy_ahead(to, from, 16);
#define HALF_COPY_OF(to, from, size) copy_ahead(to, from, size);
#define HALF_COPY_ONCE_OF(to, from, size) copy_ahead(to, from, size);
#define HALF_COPY_COMMIT copies_ahead.commit();
#define HALF_COPY_WAIT copies_ahead.wait(AHEAD - 1);
#define HALF_COPY_WAIT_ALL copies_ahead.wait(0);

// Element k of row r of a step of 16 of K that a descriptor names: of a swizzled tile with K along
// its rows of 128 bytes, or, transposed, of blocks of 64 rows with these along them.
inline uint tile_place(ulong descriptor, int row, int k, bool transposed) {
    const auto r = static_cast<uint>(row), c = static_cast<uint>(k);
    const uint at = static_cast<uint>(descriptor & 0x3fff) << 4;
    if (transposed) {
        const uint block = static_cast<uint>(descriptor >> 16 & 0x3fff) << 4;
        return at + r / 64 * block + c * 128 + ((r % 64 / 8 ^ (c & 7)) << 4) + r % 8 * 2;
    }
    const uint chunk = (at & 127) / 16 + c / 8;
    return (at & ~1023u) + r / 8 * 1024 + r % 8 * 128 + ((chunk ^ (r & 7)) << 4) + c % 8 * 2;
}
inline float tile_element(ulong descriptor, int row, int k, bool transposed = false, int kind = 1) {
    std::uint16_t bits;
    std::memcpy(&bits, work_group.local + tile_place(descriptor, row, k, transposed), 2);
    return float_of_kind(bits, kind);
}
// What a work-item holds of 64 rows by `columns`: see WGMMA_64 in kernels/common/wgmma.clh.
inline void multiply(float* sums, ulong a, ulong b, bool first, int columns,
                     const char* ways = "0, 0", int kind = 1) {
    const int lane = local_id & 31, warp = local_id >> 5 & 3;
    for (int i = 0; i < columns / 2; ++i) {
        const int row = lane / 4 + 16 * warp + (i >> 1 & 1) * 8;
        const int column = i / 4 * 8 + lane % 4 * 2 + (i & 1);
        float sum = first ? 0 : sums[i];
        for (int k = 0; k < 16; ++k)
            sum += tile_element(a, row, k, ways[0] == '1', kind) *
                   tile_element(b, column, k, ways[3] == '1', kind);
        sums[i] = sum;
    }
}
#define WGMMA_64(d, a, b, first, ways) multiply(d, a, b, first, 64)
#define WGMMA_128(d, a, b, first, ways) multiply(d, a, b, first, 128)
inline void multiply_ahead(float* sums, ulong a, ulong b, int columns, const char* ways, int kind) {
    products_ahead.add(late_products, [=] { multiply(sums, a, b, false, columns, ways, kind); });
}
#define HALF_64(d, a, b, ways) multiply_ahead(d, a, b, 64, ways, KIND)
#define HALF_128(d, a, b, ways) multiply_ahead(d, a, b, 128, ways, KIND)
#define HALF_256(d, a, b, ways) multiply_ahead(d, a, b, 256, ways, KIND)
#define HALF_WAIT products_ahead.wait(STAGES - AHEAD - 1);
#define HALF_WAIT_128(d) products_ahead.wait(0);
#define WGMMA_BEGIN
#define WGMMA_COMMIT products_ahead.commit();
#define WGMMA_FENCE
#define WGMMA_WAIT_32(d) products_ahead.wait(0);
#define WGMMA_WAIT_64(d) products_ahead.wait(0);

/// Runs groups x, y of `items` work-items, one after the other. Local memory holds NaN before. A
/// work-item may return early behind the last barrier only.
inline void run_kernel(int groups_x, int groups_y, int items, const std::function<void()>& kernel) {
    group_count[0] = groups_x;
    group_count[1] = groups_y;
    items_of_group = items;
    const auto count = static_cast<std::size_t>(items);
    work_group.exchange.assign(count, 0);
    running = &kernel;
    work_items.resize(count);
    for (int group = 0; group < groups_x * groups_y; ++group) {
        group_id[0] = group % groups_x;
        group_id[1] = group / groups_x;
        work_group.used = 0;
        work_group.arrays.clear();
        std::memset(work_group.local, 0xff, local_bytes);
        copies.assign(count, {});
        products.assign(count, {});
        for (WorkItem& item : work_items) {
            if (!item.stack) item.stack = std::make_unique<char[]>(stack_bytes);
            item.done = false;
            getcontext(&item.context);
            item.context.uc_stack = {item.stack.get(), 0, stack_bytes};
            item.context.uc_link = &turns;
            makecontext(&item.context, run_item, 0);
        }
        // Now the first work-item is first, now the last.
        for (int round = 0, done = 0; done < items; ++round) {
            if (done > 0) std::abort();  // some wait at a barrier that others will never reach
            for (int i = 0; i < items; ++i) {
                local_id = round % 2 == 0 ? i : items - 1 - i;
                WorkItem& item = work_items[static_cast<std::size_t>(local_id)];
                swapcontext(&turns, &item.context);
                done += item.done;
            }
        }
        for (local_id = 0; local_id < items; ++local_id)
            if (!copies_ahead.empty() || !products_ahead.empty()) std::abort();
    }
}
