// SPDX-License-Identifier: MIT
// Emulates a work-group of an OpenCL kernel on the host. Work-items are coroutines. The file
// defines what kernels for NVIDIA's Hopper and Ampere have as inline PTX: asynchronous copies,
// shuffles, and warpgroup matrix products over tiles in local memory, which descriptors name. With
// MMA 1 it defines a warp's matrix loads, and products of what its lanes hold. That is enough to
// run the kernels that translate.py names on any machine, though slowly.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
struct uint2 {
    uint x, y;
};
struct int4 {
    int x, y, z, w;
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
enum { CLK_LOCAL_MEM_FENCE, CLK_GLOBAL_MEM_FENCE };

// Work-items take turns. Each runs until it waits for others, either of its work-group or of its
// warp alone. setcontext() starts a work-item. After that, a jump is enough to switch to it, also
// for the work-items of later work-groups and kernels, which take its place on its stack.
struct WorkItem {
    ucontext_t begin;
    jmp_buf at;
    std::unique_ptr<char[]> stack;
    bool begun, done, in_warp;
};
constexpr std::size_t stack_bytes = 256 << 10;
inline std::vector<WorkItem> work_items;
inline jmp_buf turns;
inline const std::function<void()>* running;
inline void wait_for_others(bool of_warp) {
    WorkItem& mine = work_items[static_cast<std::size_t>(local_id)];
    mine.in_warp = of_warp;
    if (_setjmp(mine.at) == 0) _longjmp(turns, 1);
}
inline void barrier(int) {
    wait_for_others(false);
}
inline void run_item() {
    for (;;) {
        (*running)();
        work_items[static_cast<std::size_t>(local_id)].done = true;
        wait_for_others(false);
    }
}
inline void take_turn() {
    WorkItem& item = work_items[static_cast<std::size_t>(local_id)];
    if (_setjmp(turns) != 0) return;
    if (item.begun) _longjmp(item.at, 1);
    item.begun = true;
    item.stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
    getcontext(&item.begin);
    item.begin.uc_stack = {item.stack.get(), 0, stack_bytes};
    item.begin.uc_link = nullptr;
    makecontext(&item.begin, run_item, 0);
    setcontext(&item.begin);
}
/// Runs the warp that begins with work-item `first`, until all of its work-items wait for the
/// work-group or are done.
inline void run_warp(int first) {
    constexpr int lanes = 32;
    for (int round = 0;; ++round) {
        int in_warp = 0;
        for (int i = 0; i < lanes; ++i) {
            // Alternate which lane runs first, the first one or the last one.
            local_id = first + (round % 2 == 0 ? i : lanes - 1 - i);
            take_turn();
            in_warp += work_items[static_cast<std::size_t>(local_id)].in_warp;
        }
        if (in_warp == 0) return;
        if (in_warp != lanes) std::abort();  // some lanes are not where the others are
    }
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
inline uint mul_hi(uint a, uint b) {
    return static_cast<uint>(static_cast<ulong>(a) * b >> 32);
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
inline uint2 max(uint2 a, uint2 b) {
    return {std::max(a.x, b.x), std::max(a.y, b.y)};
}
inline int min(int a, int b) {
    return std::min(a, b);
}
using std::isinf;
inline float mad(float a, float b, float c) {
    return std::fma(a, b, c);
}
#define POWER_OF_2(y, x) y = std::exp2(x);

// Returns the nearest half. Ties go to even, and values beyond the largest half become infinity.
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
inline const std::vector<float> floats_of_halves = [] {
    std::vector<float> all;
    for (uint i = 0; i < 65536; ++i) all.push_back(float_of(i));
    return all;
}();
inline float float_of_kind(uint bits, int kind) {
    return kind == 2 ? as_float(bits << 16) : floats_of_halves[bits];
}
// A half in memory (kernels/common/storage.clh).
struct half {
    ushort bits;
};
inline float vload_half(int, const half* from) {
    return float_of_kind(from->bits, 1);
}
inline void vstore_half_rte(float v, int, half* to) {
    to->bits = static_cast<ushort>(half_of(v));
}
inline uint pack_half(float low, float high) {
    return half_of(low) | half_of(high) << 16;
}
/// Of kernels/common/storage.clh, which has it only where STORES_BFLOAT is defined.
inline void stored_put_2(ushort* p, long i, float v) {
    p[i] = static_cast<ushort>(bfloat_of(v));
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

/// What each lane gives to its warp. It stays valid until the exchange after the next.
struct Given {
    uint v[6];
    int exchanges;
};
inline std::vector<Given> given[2];  // by work-item
/// Gives v to the warp and waits for the other lanes. Returns what lane 0 gave, followed by what
/// the other lanes gave.
inline const Given* exchange(std::initializer_list<uint> v) {
    const auto mine = static_cast<std::size_t>(local_id);
    const auto turn = static_cast<std::size_t>(++given[0][mine].exchanges & 1);
    std::copy(v.begin(), v.end(), given[turn][mine].v);
    wait_for_others(true);
    return &given[turn][mine & ~std::size_t{31}];
}
inline uint exchanged(uint v, int with) {
    return exchange({v})[with & 31].v[0];
}
inline uint warp_max(uint v) {
    const Given* all = exchange({v});
    for (int i = 0; i < 32; ++i) v = std::max(v, all[i].v[0]);
    return v;
}
#define VOTE(any, is)                                          \
    {                                                          \
        const Given* all_ = exchange({static_cast<uint>(is)}); \
        any = 0;                                               \
        for (int i_ = 0; i_ < 32; ++i_) any |= all_[i_].v[0];  \
    }
#define FIRST_LANE(y, x) y = static_cast<int>(exchanged(static_cast<uint>(x), 0));
#define SHUFFLE_XOR(other, v, by) other = exchanged(v, local_id ^ (by));

/// A device refuses an address that is not a multiple of the copy's size, even if less is read.
inline void copy_part(uint to, const void* from, uint bytes, uint read) {
    if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0 || to % bytes != 0) std::abort();
    std::memset(work_group.local + to, 0, bytes);
    if (read > 0) std::memcpy(work_group.local + to, from, read);
}

// A device may perform copies and products at once, or as late as when a work-item waits for them.
// The emulation can do either. A warp's own products (mma) always happen at once.
inline bool late_copies, late_products;
/// Selects the order of copies and products, for 0 to ORDERS - 1.
#if MMA
#define ORDERS 2
#else
#define ORDERS 4
#endif
inline const char* set_order(int order) {
    static constexpr const char* names[] = {"early copies, early products",
                                            "late copies, early products",
                                            "early copies, late products", "all late"};
    late_copies = order & 1;
    late_products = order & 2;
    return names[order];
}
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
    /// Waits until all groups but the last `but` are done.
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
inline void copy_ahead(uint to, const void* from, uint read, uint bytes = 16) {
    copies_ahead.add(late_copies, [=] { copy_part(to, from, bytes, read); });
}
#define COPY_16(to, from) copy_ahead(to, from, 16);
#define COPY_16_OF(to, from, size) copy_ahead(to, from, size);
#define COPY_16_NEAR_OF(to, from, size) copy_ahead(to, from, size);
#define COPY_4_OF(to, from, size) copy_ahead(to, from, size, 4);
#define COPY_COMMIT copies_ahead.commit();
#define COPY_WAIT_BUT(n) copies_ahead.wait(n);

// The place of element k of row r, in a step of 16 of K whose tile is named by a descriptor. There
// are three kinds of tile: a swizzled tile with K along its rows of 128 bytes; if transposed, a
// swizzled tile of blocks of 64 rows, with these along the lines; or, without a swizzle, matrices
// of eight rows of eight elements.
inline uint tile_place(ulong descriptor, int row, int k, bool transposed) {
    const auto r = static_cast<uint>(row), c = static_cast<uint>(k);
    const uint at = static_cast<uint>(descriptor & 0x3fff) << 4;
    if (descriptor >> 62 == 0) {
        const uint across = static_cast<uint>(descriptor >> 16 & 0x3fff) << 4;
        const uint down = static_cast<uint>(descriptor >> 32 & 0x3fff) << 4;
        return at + r / 8 * down + c / 8 * across + r % 8 * 16 + c % 8 * 2;
    }
    if (transposed) {
        const uint block = static_cast<uint>(descriptor >> 16 & 0x3fff) << 4;
        return at + r / 64 * block + c * 128 + ((r % 64 / 8 ^ (c & 7)) << 4) + r % 8 * 2;
    }
    const uint chunk = (at & 127) / 16 + c / 8;
    return (at & ~1023u) + r / 8 * 1024 + r % 8 * 128 + ((chunk ^ (r & 7)) << 4) + c % 8 * 2;
}
// Reads the 16 elements of row r of such a step. In a transposed tile, element k + 8 lies 8 lines
// behind element k. In others, eight elements lie side by side.
inline void read_tile_row(float* to, ulong descriptor, int row, bool transposed, int kind) {
    std::uint16_t bits[16];
    if (transposed && descriptor >> 62 != 0)
        for (int k = 0; k < 8; ++k) {
            const uchar* from = work_group.local + tile_place(descriptor, row, k, true);
            std::memcpy(bits + k, from, 2);
            std::memcpy(bits + k + 8, from + 8 * 128, 2);
        }
    else
        for (int k = 0; k < 16; k += 8)
            std::memcpy(bits + k, work_group.local + tile_place(descriptor, row, k, transposed),
                        16);
    if (kind == 2)
        for (int k = 0; k < 16; ++k) to[k] = as_float(static_cast<uint>(bits[k]) << 16);
    else
        for (int k = 0; k < 16; ++k) to[k] = floats_of_halves[bits[k]];
}
// Computes what a work-item holds of 64 rows by `columns` columns: see UNIT_64 in
// kernels/matrix/unit.clh.
inline void multiply(float* sums, ulong a, ulong b, bool first, int columns, bool a_transposed,
                     bool b_transposed, int kind) {
    const int lane = local_id & 31, warp = local_id >> 5 & 3;
    // Each element is read once. A work-item's sums are in two rows, eight rows apart, and both
    // rows use the same column.
    float rows[2][16];
    for (int half = 0; half < 2; ++half)
        read_tile_row(rows[half], a, lane / 4 + 16 * warp + 8 * half, a_transposed, kind);
    for (int i = 0; i < columns / 2; i += 4)
        for (int next = 0; next < 2; ++next) {
            float column[16];
            read_tile_row(column, b, i * 2 + lane % 4 * 2 + next, b_transposed, kind);
            for (int half = 0; half < 2; ++half) {
                float& kept = sums[i + 2 * half + next];
                float sum = first ? 0 : kept;
                for (int k = 0; k < 16; ++k) sum += rows[half][k] * column[k];
                kept = sum;
            }
        }
}
#if !MMA
inline void multiply_ahead(float* sums, ulong a, ulong b, bool first, int columns, bool ta, bool tb,
                           int kind) {
    products_ahead.add(late_products, [=] { multiply(sums, a, b, first, columns, ta, tb, kind); });
}
#if defined(KIND) && KIND == 2
#define UNIT_KIND 2
#else
#define UNIT_KIND 1
#endif
#define UNIT_64(d, a, b, first, ta, tb) multiply_ahead(d, a, b, first, 64, ta, tb, UNIT_KIND)
#define UNIT_128(d, a, b, first, ta, tb) multiply_ahead(d, a, b, first, 128, ta, tb, UNIT_KIND)
/// A's registers are those of multiply_matrices() below. They are read when the product is issued.
inline void multiply_registers_ahead(float* sums, const uint* a, ulong b, bool first, int columns,
                                     int kind) {
    const Given* all = exchange({a[0], a[1], a[2], a[3]});
    std::array<std::array<float, 16>, 2> rows;
    for (uint half = 0; half < 2; ++half)
        for (uint k = 0; k < 16; ++k) {
            const uint lane = (static_cast<uint>(local_id) & 28) + k % 8 / 2;
            const uint pair = all[lane].v[half + k / 8 * 2];
            rows[half][k] = float_of_kind(pair >> (k & 1) * 16 & 0xffff, kind);
        }
    products_ahead.add(late_products, [=] {
        const int lane = local_id & 31;
        for (int i = 0; i < columns / 2; i += 4)
            for (int next = 0; next < 2; ++next) {
                float column[16];
                read_tile_row(column, b, i * 2 + lane % 4 * 2 + next, true, kind);
                for (std::size_t half = 0; half < 2; ++half) {
                    float& kept = sums[i + 2 * static_cast<int>(half) + next];
                    float sum = first ? 0 : kept;
                    for (std::size_t k = 0; k < 16; ++k) sum += rows[half][k] * column[k];
                    kept = sum;
                }
            }
    });
}
#define UNIT_64_SET(d, a, b) UNIT_64(d, a, b, true, 0, 0)
#define UNIT_64_ADD(d, a, b) UNIT_64(d, a, b, false, 0, 0)
#define UNIT_64_OF_SET(d, a, b) multiply_registers_ahead(d, a, b, true, 64, UNIT_KIND)
#define UNIT_64_OF_ADD(d, a, b) multiply_registers_ahead(d, a, b, false, 64, UNIT_KIND)
#define UNIT_32_OF_SET(d, a, b) multiply_registers_ahead(d, a, b, true, 32, UNIT_KIND)
#define UNIT_32_OF_ADD(d, a, b) multiply_registers_ahead(d, a, b, false, 32, UNIT_KIND)
#define UNIT_WAIT_BUT_32(n, d) products_ahead.wait(n);
#define UNIT_WAIT_BUT(n) products_ahead.wait(n);
#define UNIT_WAIT_16(d) products_ahead.wait(0);
#define UNIT_ZERO(x) x = 0;
#define UNIT_HIDE(x) \
    {}
#define HALF_64(d, a, b, ta, tb) multiply_ahead(d, a, b, false, 64, ta, tb, KIND)
#define HALF_128(d, a, b, ta, tb) multiply_ahead(d, a, b, false, 128, ta, tb, KIND)
#define HALF_256(d, a, b, ta, tb) multiply_ahead(d, a, b, false, 256, ta, tb, KIND)
#define HALF_WAIT products_ahead.wait(STAGES - AHEAD - 1);
#define HALF_WAIT_128(d) products_ahead.wait(0);
#define UNIT_TWO_RESIDENT
#define UNIT_BEGIN
#define UNIT_COMMIT products_ahead.commit();
#define UNIT_FENCE
#define UNIT_WAIT_32(d) products_ahead.wait(0);
#define UNIT_WAIT_64(d) products_ahead.wait(0);
#endif

// ldmatrix: lanes 8 m to 8 m + 7 have the addresses of the rows of matrix m. From each matrix, a
// lane gets elements lane % 4 * 2 and the next one of row lane / 4 or, if transposed, of column
// lane / 4.
inline void load_matrices(uint* to, uint at, bool transposed) {
    const Given* all = exchange({at});
    const uint lane = static_cast<uint>(local_id) & 31;
    for (uint m = 0; m < 4; ++m) {
        ushort pair[2];
        for (uint i = 0; i < 2; ++i) {
            const uint row = transposed ? lane % 4 * 2 + i : lane / 4;
            const uint column = transposed ? lane / 4 : lane % 4 * 2 + i;
            const uint from = all[8 * m + row].v[0];
            // A row has 16 bytes and must be aligned to 16 bytes.
            if (from % 16 != 0 || from + 16 > local_bytes) std::abort();
            std::memcpy(&pair[i], work_group.local + from + column * 2, 2);
        }
        to[m] = pair[0] | static_cast<uint>(pair[1]) << 16;
    }
}
// mma.sync.m16n8k16. A is 16 x 16, and a lane gives four registers of it. The first and third have
// row lane / 4, the second and fourth the row that is 8 further. The first and second have elements
// lane % 4 * 2 and the next, the third and fourth those that are 8 further. B is 16 x 8, and a lane
// gives two registers of column lane / 4, with elements likewise. A lane gets rows lane / 4 and 8
// further of the result, in columns lane % 4 * 2 and the next.
inline void multiply_matrices(float* d, const uint* a, uint b0, uint b1, int kind) {
    const Given* all = exchange({a[0], a[1], a[2], a[3], b0, b1});
    const auto element = [&](uint lane, uint part, uint k) {
        return float_of_kind(all[lane].v[part] >> (k & 1) * 16 & 0xffff, kind);
    };
    const uint lane = static_cast<uint>(local_id) & 31, row = lane / 4, column = lane % 4 * 2;
    float rows[2][16], columns[2][16];
    for (uint half = 0; half < 2; ++half)
        for (uint k = 0; k < 16; ++k) {
            rows[half][k] = element(row * 4 + k % 8 / 2, half + k / 8 * 2, k);
            columns[half][k] = element((column + half) * 4 + k % 8 / 2, 4 + k / 8, k);
        }
    for (uint i = 0; i < 4; ++i)
        for (uint k = 0; k < 16; ++k) d[i] += rows[i >> 1][k] * columns[i & 1][k];
}
#define MMA_LOAD_0(r, at) load_matrices(r, at, false);
#define MMA_LOAD_1(r, at) load_matrices(r, at, true);
#define MMA_ADD_1(d, i, a, b0, b1) multiply_matrices((d) + (i), a, b0, b1, 1);
#define MMA_ADD_2(d, i, a, b0, b1) multiply_matrices((d) + (i), a, b0, b1, 2);

// Stricter than a device's: nobody passes before all have arrived.
#define MBARRIER_BEGIN(at, warps) \
    {}
#define MBARRIER_ARRIVE(at)
#define MBARRIER_AWAIT(at, parity) barrier(CLK_LOCAL_MEM_FENCE);

/// A barrier of 128 work-items that run on their own. Other work-items may pass it more often, or
/// less often.
#define WORKER_BARRIER barrier(CLK_LOCAL_MEM_FENCE);

/// Runs a grid of groups_x by groups_y work-groups of `items` work-items, one group after the
/// other. Local memory holds NaN before each. Work-items may return early only after the last
/// barrier, and only together with the other work-items of their `worker_items`.
inline void run_kernel(int groups_x, int groups_y, int items, const std::function<void()>& kernel,
                       int worker_items = 0) {
    if (worker_items == 0) worker_items = items;
    group_count[0] = groups_x;
    group_count[1] = groups_y;
    items_of_group = items;
    const auto count = static_cast<std::size_t>(items);
    for (auto& half : given) half.assign(count, {});
    running = &kernel;
    if (work_items.size() < count) work_items.resize(count);
    for (int group = 0; group < groups_x * groups_y; ++group) {
        group_id[0] = group % groups_x;
        group_id[1] = group / groups_x;
        work_group.used = 0;
        work_group.arrays.clear();
        std::memset(work_group.local, 0xff, local_bytes);
        copies.assign(count, {});
        products.assign(count, {});
        for (int i = 0; i < items; ++i) {
            work_items[static_cast<std::size_t>(i)].done = false;
            work_items[static_cast<std::size_t>(i)].in_warp = false;
        }
        // Alternate which warp runs first, the first one or the last one. Each runs as far as it
        // can.
        for (int round = 0, done = 0; done < items; ++round) {
            const int warps = items / 32;
            for (int i = 0; i < warps; ++i) {
                const int first = (round % 2 == 0 ? i : warps - 1 - i) * 32;
                if (!work_items[static_cast<std::size_t>(first)].done) run_warp(first);
            }
            done = 0;
            // Abort if some work-items wait at a barrier that others will never reach.
            for (int first = 0; first < items; first += worker_items) {
                int of_worker = 0;
                for (int i = first; i < first + worker_items; ++i)
                    of_worker += work_items[static_cast<std::size_t>(i)].done;
                if (of_worker != 0 && of_worker != worker_items) std::abort();
                done += of_worker;
            }
        }
        for (local_id = 0; local_id < items; ++local_id)
            if (!copies_ahead.empty() || !products_ahead.empty()) std::abort();
    }
}
