// SPDX-License-Identifier: MIT
// A work-group of an OpenCL kernel as threads of the host, with what kernels for NVIDIA's Hopper
// have as inline PTX: asynchronous copies (done at once), shuffles, and warpgroup matrix products
// over tiles in local memory that are named by descriptors. Enough to run the kernels that
// translate.py names, slowly, where there is no such device.
#pragma once

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using uchar = unsigned char;
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
};

constexpr std::size_t local_bytes = 227 << 10;
struct WorkGroup {
    alignas(1024) uchar local[local_bytes];
    std::size_t used = 0;
    std::map<std::string, std::size_t> arrays;
    std::mutex mutex;
    std::vector<uint> exchange;
    std::barrier<>* all = nullptr;
};
inline WorkGroup work_group;
inline int group_id[2], group_count[2];
inline thread_local int local_id;

inline int get_local_id(int) {
    return local_id;
}
inline int get_group_id(int dimension) {
    return group_id[dimension];
}
inline int get_num_groups(int dimension) {
    return group_count[dimension];
}
enum { CLK_LOCAL_MEM_FENCE };
inline void barrier(int) {
    work_group.all->arrive_and_wait();
}

inline void* local_array(const char* name, std::size_t bytes) {
    const std::lock_guard lock(work_group.mutex);
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

// Element k of row r of a tile with K along its rows of 128 bytes, swizzled; the descriptor is of a
// step of 16 of K in it.
inline float tile_element(ulong descriptor, int row, int k) {
    const uint at = static_cast<uint>(descriptor & 0x3fff) << 4, tile = at & ~1023u;
    const uint chunk = (at & 127) / 16 + static_cast<uint>(k) / 8;
    const uint place = static_cast<uint>(row) / 8 * 1024 + static_cast<uint>(row) % 8 * 128 +
                       ((chunk ^ (static_cast<uint>(row) & 7)) << 4) + static_cast<uint>(k) % 8 * 2;
    std::uint16_t half;
    std::memcpy(&half, work_group.local + tile + place, 2);
    return float_of(half);
}
// What a work-item holds of 64 rows by `columns`: see WGMMA_64 in kernels/common/wgmma.clh.
inline void multiply(float* sums, ulong a, ulong b, bool first, int columns) {
    const int lane = local_id & 31, warp = local_id >> 5 & 3;
    for (int i = 0; i < columns / 2; ++i) {
        const int row = lane / 4 + 16 * warp + (i >> 1 & 1) * 8;
        const int column = i / 4 * 8 + lane % 4 * 2 + (i & 1);
        float sum = first ? 0 : sums[i];
        for (int k = 0; k < 16; ++k) sum += tile_element(a, row, k) * tile_element(b, column, k);
        sums[i] = sum;
    }
}
#define WGMMA_64(d, a, b, first, ways) multiply(d, a, b, first, 64)
#define WGMMA_128(d, a, b, first, ways) multiply(d, a, b, first, 128)
#define WGMMA_BEGIN
#define WGMMA_COMMIT
#define WGMMA_FENCE
#define WGMMA_WAIT_32(d)
#define WGMMA_WAIT_64(d)

/// Runs groups x, y of `items` work-items, one after the other. Local memory holds NaN before. A
/// work-item may return early behind the last barrier only.
inline void run_kernel(int groups_x, int groups_y, int items, const std::function<void()>& kernel) {
    group_count[0] = groups_x;
    group_count[1] = groups_y;
    work_group.exchange.assign(static_cast<std::size_t>(items), 0);
    std::barrier<> all(items);
    work_group.all = &all;
    const auto work = [&](int item) {
        local_id = item;
        for (int group = 0; group < groups_x * groups_y; ++group) {
            if (item == 0) {
                group_id[0] = group % groups_x;
                group_id[1] = group / groups_x;
                work_group.used = 0;
                work_group.arrays.clear();
                std::memset(work_group.local, 0xff, local_bytes);
            }
            all.arrive_and_wait();
            kernel();
            all.arrive_and_wait();
        }
    };
    std::vector<std::thread> threads;
    for (int item = 0; item < items; ++item) threads.emplace_back(work, item);
    for (std::thread& thread : threads) thread.join();
}
