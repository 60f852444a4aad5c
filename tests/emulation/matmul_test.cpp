// SPDX-License-Identifier: MIT
// Runs the kernels of matmul.wgmma_split, matmul.wgmma_direct (DIRECT 1) and
// matmul.wgmma_matrix_planes (PLANES_SPLIT 1), and those of the mma engines, emulated on the host,
// and compares them with a product in double. The test is built once per variant: WM, PRODUCTS or
// BN and STAGES, TA and TB are the kernel's defines, and so is C_FOURS. A_KIND, B_KIND and C_KIND
// are the storage types of A, B and C: 0 float, 1 half, 2 bfloat16. R_KIND is the storage type of a
// tensor that is added, or -1.
#include "work_group.hpp"

#include <cstdio>
#include <random>
#include <type_traits>

#define A_STORED A_KIND
#define B_STORED B_KIND
#define C_STORED C_KIND
#define HAS_RESIDUAL (R_KIND >= 0)
#if R_KIND >= 0
#define R_STORED R_KIND
#define EPILOGUE(v, r) v = v + r;
#else
#define EPILOGUE(v, r)
#endif
#define A_BATCH(batch) ((batch)*a_batch)
#define B_BATCH(batch) ((batch)*b_batch)
#if DIRECT
namespace product {
#include "matmul/stored16.inc"
}
#define KERNEL product::matmul_stored16
constexpr int columns = BN;
#elif PLANES_SPLIT
namespace packing {
#include "matmul/planes_pack.inc"
}
// A translated kernel ends the definitions of storage types, which are the kernel's own otherwise.
#define C_STORED C_KIND
#if R_KIND >= 0
#define R_STORED R_KIND
#endif
namespace product {
#include "matmul/planes.inc"
}
constexpr int columns = 128;
#else
namespace product {
#include "matmul/split.inc"
}
#define KERNEL product::matmul_split
constexpr int columns = 128;
#endif

namespace {

struct Shape {
    int m, n, k, batches, splits;
    bool one_b;  ///< all batches have the same B
    int offset;  ///< elements in memory before each operand
};

template <int kind>
using Type = std::conditional_t<kind == 0, float, std::conditional_t<kind == 1, half, ushort>>;

template <int kind>
double value(const Type<kind>& stored) {
    if constexpr (kind == 0)
        return static_cast<double>(stored);
    else if constexpr (kind == 1)
        return static_cast<double>(float_of_kind(stored.bits, 1));
    else
        return static_cast<double>(float_of_kind(stored, 2));
}

/// An operand in memory. Elements in front of it, behind it, and those that were not written are
/// NaN.
template <int kind>
struct Stored {
    std::vector<Type<kind>> all;
    int offset;
    Stored(int count, int before)
        : all(static_cast<std::size_t>(count + before + 8)), offset(before) {
        std::memset(all.data(), 0xff, all.size() * sizeof(all[0]));
    }
    Stored(int count, int before, std::mt19937& random) : Stored(count, before) {
        std::normal_distribution<float> normal;
        for (int i = 0; i < count; ++i) {
            const float v = normal(random);
            Type<kind>& to = all[static_cast<std::size_t>(i + offset)];
            if constexpr (kind == 0)
                to = v;
            else if constexpr (kind == 1)
                to.bits = static_cast<ushort>(half_of(v));
            else
                to = static_cast<ushort>(bfloat_of(v));
        }
    }
    double operator[](int i) const {
        return value<kind>(all[static_cast<std::size_t>(i + offset)]);
    }
    Type<kind>* data() { return all.data(); }
};

// Returns the relative L2 error.
double run(const Shape& s) {
    std::mt19937 random(7);
    constexpr int r_kind = R_KIND < 0 ? 0 : R_KIND;
    const int count = s.batches * s.m * s.n;
    Stored<A_KIND> a(s.batches * s.m * s.k, s.offset, random);
    Stored<B_KIND> b((s.one_b ? 1 : s.batches) * s.k * s.n, s.offset, random);
    Stored<0> bias(s.n, s.offset, random);
    Stored<r_kind> residual(count, s.offset, random);
    Stored<C_KIND> c(s.splits * count, s.offset);
    const float alpha = 0.5f;
    const int tiles_m = (s.m + 64 * WM - 1) / (64 * WM), tiles_n = (s.n + columns - 1) / columns;
    const int k_part = ((s.k + s.splits - 1) / s.splits + 63) / 64 * 64;
    const auto before = static_cast<ulong>(s.offset);
#if PLANES_SPLIT
    // Everything that is not written, and what lies in front of the planes and behind them, is NaN.
    const int a_tiles = (s.m + 63) / 64, b_tiles = (s.n + 63) / 64, blocks = (s.k + 63) / 64;
    const long block_bytes = PRODUCTS == 1 ? 8192 : 16384, front = 64;
    const long a_factors = a_tiles * blocks * block_bytes;
    const long b_planes = a_factors + a_tiles * blocks * 256;
    const long b_factors = b_tiles * blocks * block_bytes, end = b_factors + b_tiles * blocks * 256;
    std::vector<uint4> memory(static_cast<std::size_t>(front + b_planes + end + 64) / 16,
                              uint4{~0u, ~0u, ~0u, ~0u});
    auto* const planes = reinterpret_cast<uchar*>(memory.data());
    run_kernel((a_tiles + b_tiles) * blocks, 1, 256, [&] {
        packing::planes_pack(a.data(), before, b.data(), before, planes, front, s.m, s.n, s.k,
                             blocks, a_tiles * blocks, a_factors, b_planes, b_planes + b_factors);
    });
    for (const uint4& beyond : {memory[0], memory[3], memory[memory.size() - 4], memory.back()})
        if (beyond.x != ~0u || beyond.w != ~0u) return NAN;
    run_kernel(tiles_m * tiles_n * s.splits, 1, 256, [&] {
        product::planes_product(planes, front, bias.data(), before, residual.data(), before,
                                c.data(), before, s.m, s.n, blocks, k_part / 64, tiles_m, tiles_n,
                                s.offset != 0, a_factors, b_planes, b_planes + b_factors, alpha,
                                s.splits == 1);
    });
#else
    run_kernel(tiles_m * tiles_n * s.batches * s.splits, 1, 256, [&] {
        KERNEL(a.data(), before, b.data(), before, bias.data(), before, residual.data(), before,
               c.data(), before, s.m, s.n, s.k, k_part, tiles_m, tiles_n, s.batches, s.m * s.k,
               s.one_b ? 0 : s.k * s.n, alpha, s.splits == 1);
    });
#endif
    // Nothing outside C may be written.
    for (int i = 0; i < s.offset; ++i)
        if (std::isfinite(c[i - s.offset])) return NAN;
    for (int i = 0; i < 8; ++i)
        if (std::isfinite(c[s.splits * count + i])) return NAN;
    double error = 0, size = 0;
    for (int i = 0; i < count; ++i) {
        const int column = i % s.n, row = i / s.n % s.m, batch = i / s.n / s.m;
        const int b_at = s.one_b ? 0 : batch * s.k * s.n;
        double exact = 0, made = 0;
        for (int k = 0; k < s.k; ++k)
            exact += a[batch * s.m * s.k + (TA ? k * s.m + row : row * s.k + k)] *
                     b[b_at + (TB ? column * s.k + k : k * s.n + column)];
        exact *= static_cast<double>(alpha);
        if (s.splits == 1) exact += bias[column];
        if (R_KIND >= 0) exact += residual[i];
        for (int z = 0; z < s.splits; ++z) made += c[z * count + i];
        error += (made - exact) * (made - exact);
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

}  // namespace

int main() {
    // Factors that are stored in 16 bits are exact. Errors come from the rounding of sums, of float
    // factors if there is one product of halves, and of results that are stored in 16 bits.
    double bound = DIRECT ? 3e-6 : 1e-6;
#if !DIRECT
    if (PRODUCTS == 1 && (A_KIND == 0 || B_KIND == 0)) bound = 1e-3;
#endif
    if (C_KIND > 0) bound = std::max(bound, C_KIND == 1 ? 0x1p-11 : 0x1p-8);
    int failed = 0, done = 0;
    // The cases have tiles that are not full, several tiles, batches, one B for all batches, parts
    // of K, and enough steps to use stages again. Then come the same with lines of a multiple of
    // eight elements. Kernels that copy 16 bytes at a time need operands that are aligned so.
    for (Shape s : {Shape{5, 7, 9, 1, 1, false, 0}, Shape{130, 150, 200, 1, 1, false, 3},
                    Shape{70, 129, 65, 2, 1, false, 0}, Shape{31, 33, 70, 3, 1, true, 0},
                    Shape{64, 128, 448, 1, 2, false, 0}, Shape{8, 16, 24, 1, 1, false, 0},
                    Shape{136, 264, 200, 1, 1, false, 8}, Shape{72, 136, 72, 2, 1, false, 1},
                    Shape{40, 24, 8, 3, 1, true, 0}, Shape{64, 72, 456, 1, 3, false, 0},
                    Shape{72, 40, 520, 1, 1, false, 0}, Shape{24, 9, 64, 2, 1, false, 0},
                    Shape{11, 16, 72, 2, 1, false, 0}, Shape{16, 24, 13, 2, 1, false, 0}}) {
        if (s.splits > 1 && (C_KIND > 0 || R_KIND >= 0)) continue;
#if PLANES_SPLIT
        if (s.batches > 1 || (C_FOURS && s.n % 4 != 0)) continue;
#endif
#if DIRECT
        if ((TA ? s.m : s.k) % 8 != 0 || (TB ? s.k : s.n) % 8 != 0) continue;
        if (C_FOURS != (s.n % 4 == 0)) continue;
        s.offset = s.offset / 8 * 8;
#endif
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(s);
            const bool bad = !(error <= bound);
            std::printf("%s %d x %d x %d, %d batches, %d parts, %s: relative error %.2g\n",
                        bad ? "FAILED" : "ok", s.m, s.n, s.k, s.batches, s.splits, when, error);
            failed += bad;
            ++done;
        }
    }
    return failed == 0 && done > 0 ? 0 : 1;
}
