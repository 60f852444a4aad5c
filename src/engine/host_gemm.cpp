// SPDX-License-Identifier: MIT
// host_gemm: blocking, packing, and the division of products among threads.
//
// A task is a rectangle of C. It loops over blocks of columns, then of K, then of rows. So a packed
// block of B (480 KiB) stays in the L2 cache, and a panel of A in the L1 cache.
#include "engine/host_gemm.hpp"

#include "base/integers.hpp"
#include "engine/host_gemm_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace dlprim {

namespace {

using std::int64_t;

// Multiples of every kernel's tile. block_k is also the number of terms that are summed before they
// are added to C.
constexpr int64_t block_m = 120, block_n = 480, block_k = 256;

// Up to so many panels of B, rows of A are read as they are stored: packing them would take longer
// than it saves.
constexpr int64_t few_panels = 8;

struct AlignedDelete {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
};
using AlignedFloats = std::unique_ptr<float[], AlignedDelete>;

AlignedFloats aligned_floats(std::size_t count) {
    return AlignedFloats(
        static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t(64))));
}

// Packed panels of one thread.
struct Panels {
    AlignedFloats a = aligned_floats(block_m * block_k);
    AlignedFloats b = aligned_floats(block_n * block_k);
};

struct Rectangle {
    int64_t batch, m0, m1, n0, n1;
};

void multiply_rectangle(const HostGemmKernels& kernels, const Rectangle& r, int64_t k,
                        const GemmSource& a, const GemmSource& b, const GemmSink& c) {
    static thread_local Panels panels;
    alignas(64) float tile[host_gemm_max_rows * host_gemm_max_columns];
    const int mr = kernels.rows, nr = kernels.columns;
    for (int64_t nb = r.n0; nb < r.n1; nb += block_n) {
        const int64_t ne = std::min(r.n1, nb + block_n);
        // With k = 0 there is still one iteration, of depth 0, which stores zeros.
        for (int64_t kb = 0; kb == 0 || kb < k; kb += block_k) {
            const int64_t depth = std::min(block_k, k - kb);
            const bool first = kb == 0, last = kb + block_k >= k;
            if (depth > 0) b.prepare(r.batch, nb, ne - nb, kb, depth);
            const bool b_stored = depth > 0 && b.panel(r.batch, nb, kb) != nullptr;
            for (int64_t j = nb; j < ne && depth > 0 && !b_stored; j += nr)
                b.pack(r.batch, j, static_cast<int>(std::min<int64_t>(nr, ne - j)), nr, kb, depth,
                       panels.b.get() + (j - nb) * depth);
            for (int64_t mb = r.m0; mb < r.m1; mb += block_m) {
                const int64_t me = std::min(r.m1, mb + block_m);
                const GemmSource::Rows rows =
                    ne - nb <= few_panels * nr ? a.rows(r.batch, mb, kb) : GemmSource::Rows{};
                const int64_t stored = rows.data ? me - (me - mb) % mr : mb;  // the others packed
                const bool a_stored = depth > 0 && a.panel(r.batch, mb, kb) != nullptr;
                for (int64_t i = stored; i < me && depth > 0 && !a_stored; i += mr)
                    a.pack(r.batch, i, static_cast<int>(std::min<int64_t>(mr, me - i)), mr, kb,
                           depth, panels.a.get() + (i - mb) * depth);
                for (int64_t j = nb; j < ne; j += nr) {
                    const float* panel =
                        b_stored ? b.panel(r.batch, j, kb) : panels.b.get() + (j - nb) * depth;
                    for (int64_t i = mb; i < me; i += mr) {
                        if (i < stored)
                            kernels.multiply_rows(depth, rows.data + (i - mb) * rows.stride,
                                                  rows.stride, panel, tile);
                        else
                            kernels.multiply(depth,
                                             a_stored ? a.panel(r.batch, i, kb)
                                                      : panels.a.get() + (i - mb) * depth,
                                             panel, tile);
                        c.store({tile, nr, r.batch, i, j,
                                 static_cast<int>(std::min<int64_t>(mr, me - i)),
                                 static_cast<int>(std::min<int64_t>(nr, ne - j)), first});
                    }
                }
                if (last) c.finish(r.batch, mb, me - mb, nb, ne - nb);
            }
        }
    }
}

/// `k` counts elements or words, as the kernels take them.
struct Sizes {
    int64_t batch, m, n, k;
};

void multiply_all(HostPool& pool, const HostGemmKernels& kernels, const Sizes& sizes,
                  const GemmSource& a, const GemmSource& b, const GemmSink& c) {
    const auto [batch, m, n, k] = sizes;
    if (batch <= 0 || m <= 0 || n <= 0) return;
    const int64_t mr = kernels.rows, nr = kernels.columns;
    // A few tasks per thread balance the load. Large rectangles keep the cost of packing low.
    const int64_t threads = pool.threads();
    const int64_t wanted = ceil_div(threads == 1 ? 1 : 3 * threads, batch);
    int64_t parts_n = std::clamp<int64_t>(n / (6 * nr), 1, wanted);
    const int64_t parts_m =
        std::clamp<int64_t>(ceil_div(wanted, parts_n), 1, std::max<int64_t>(1, m / (4 * mr)));
    if (batch * parts_m * parts_n < threads)
        parts_n = std::clamp<int64_t>(ceil_div(wanted, parts_m), 1, ceil_div(n, nr));
    const int64_t step_m = ceil_div(ceil_div(m, parts_m), mr) * mr;
    const int64_t step_n = ceil_div(ceil_div(n, parts_n), nr) * nr;
    const int64_t tasks_m = ceil_div(m, step_m), tasks_n = ceil_div(n, step_n);
    pool.parallel_for(batch * tasks_m * tasks_n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
            const int64_t tm = task % tasks_m, tn = task / tasks_m % tasks_n;
            const Rectangle r{task / (tasks_m * tasks_n), tm * step_m,
                              std::min(sizes.m, (tm + 1) * step_m), tn * step_n,
                              std::min(sizes.n, (tn + 1) * step_n)};
            multiply_rectangle(kernels, r, sizes.k, a, b, c);
        }
    });
}

/// A stored operand, whose first index is its row, or its column for B.
GemmMatrix matrix_of(const GemmOperand& operand, bool by_columns = false) {
    const bool along = operand.transposed != by_columns;
    return {operand.data, along ? 1 : operand.ld, along ? operand.ld : 1, operand.stride};
}

/// A dot product per element of C, B being stored along K.
void multiply_few_rows(HostPool& pool, const GemmProblem& p) {
    const auto dot = host_gemm_kernels().dot;
    const int64_t grain = std::max<int64_t>(1, 65536 / (p.k * p.m));
    pool.parallel_for(p.batch * p.n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
            const int64_t i = at / p.n, j = at % p.n;
            const float* column = p.b.data + i * p.b.stride + j * p.b.ld;
            for (int64_t row = 0; row < p.m; ++row) {
                float& to = p.c[i * p.stride_c + row * p.ldc + j];
                const float sum =
                    p.alpha * dot(p.k, p.a.data + i * p.a.stride + row * p.a.ld, column);
                to = p.beta == 0 ? sum : p.beta * to + sum;
            }
        }
    });
}

}  // namespace

void GemmMatrix::pack(int64_t batch, int64_t first, int count, int width, int64_t k_first,
                      int64_t depth, float* to) const {
    const float* from = data_ + batch * stride_ + first * step_ + k_first * k_step_;
    if (step_ == 1 && count == width && width == host_gemm_max_columns) {  // a copy of fixed size
        for (int64_t p = 0; p < depth; ++p, from += k_step_, to += width)
            std::memcpy(to, from, host_gemm_max_columns * sizeof(float));
        return;
    }
    if (step_ == 1) {
        for (int64_t p = 0; p < depth; ++p, from += k_step_, to += width) {
            std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
            std::fill(to + count, to + width, 0.0f);
        }
        return;
    }
    if (k_step_ == 1) return pack_rows(from, step_, count, width, depth, to);
    for (int64_t p = 0; p < depth; ++p, from += k_step_, to += width) {
        for (int i = 0; i < count; ++i) to[i] = from[i * step_];
        std::fill(to + count, to + width, 0.0f);
    }
}

void GemmMatrixSink::store(const TileSums& tile) const {
    const float* sums = tile.sums;
    float* c = c_ + tile.batch * stride_ + tile.row * ldc_ + tile.column;
    for (int i = 0; i < tile.rows; ++i, c += ldc_, sums += tile.ld) {
        if (!tile.first_block)
            for (int j = 0; j < tile.columns; ++j) c[j] += alpha_ * sums[j];
        else if (beta_ == 0)
            for (int j = 0; j < tile.columns; ++j) c[j] = alpha_ * sums[j];
        else
            for (int j = 0; j < tile.columns; ++j) c[j] = beta_ * c[j] + alpha_ * sums[j];
    }
}

void GemmPairs::prepare(int64_t batch, int64_t first, int64_t count, int64_t k_first,
                        int64_t depth) const {
    from_.prepare(batch, first, count, 2 * k_first, std::min(2 * depth, k_ - 2 * k_first));
}

void GemmPairs::pack(int64_t batch, int64_t first, int count, int width, int64_t k_first,
                     int64_t depth, float* to) const {
    constexpr int64_t step = 32;  // words, whose elements stay in the L1 cache
    alignas(64) float elements[2 * step * host_gemm_max_columns];
    const auto join = host_pair_kernels().join;
    for (int64_t at = 0; at < depth; at += step) {
        const int64_t begin = 2 * (k_first + at), words = std::min(step, depth - at);
        const int64_t there = std::min(2 * words, k_ - begin);
        from_.pack(batch, first, count, width, begin, there, elements);
        std::fill(elements + there * width, elements + 2 * words * width, 0.0f);
        for (int64_t p = 0; p < words; ++p, to += width)
            join(width, elements + 2 * p * width, elements + (2 * p + 1) * width, to);
    }
}

PairPanels::PairPanels(GemmSide side, int64_t products, int64_t m, int64_t n, int64_t depth)
    : batch(products), count(side == GemmSide::a ? m : n), k(depth) {
    const HostGemmKernels& kernels = host_pair_kernels().of(m);
    width = side == GemmSide::a ? kernels.rows : kernels.columns;
}

void pack_pairs(HostPool& pool, const PairPanels& panels, const GemmSource& from, float* to) {
    const GemmPairs pairs(from, panels.k);
    const int64_t per_product = ceil_div(panels.count, panels.width), words = panels.words();
    pool.parallel_for(panels.batch * per_product, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i % per_product * panels.width;
            pairs.pack(i / per_product, first,
                       static_cast<int>(std::min<int64_t>(panels.width, panels.count - first)),
                       panels.width, 0, words, to + i * panels.width * words);
        }
    });
}

const float* GemmPackedPairs::panel(int64_t batch, int64_t first, int64_t k_first) const {
    return data_ + batch * panels_.product_floats() + first * panels_.words() +
           k_first * panels_.width;
}

void GemmPackedPairs::pack(int64_t batch, int64_t first, int, int width, int64_t k_first,
                           int64_t depth, float* to) const {
    std::copy_n(panel(batch, first, k_first), depth * width, to);
}

void host_gemm(HostPool& pool, int64_t batch, int64_t m, int64_t n, int64_t k, const GemmSource& a,
               const GemmSource& b, const GemmSink& c) {
    multiply_all(pool, host_gemm_kernels(), {batch, m, n, k}, a, b, c);
}

void host_gemm_pairs(HostPool& pool, int64_t batch, int64_t m, int64_t n, int64_t k,
                     const GemmSource& a, const GemmSource& b, const GemmSink& c) {
    multiply_all(pool, host_pair_kernels().of(m), {batch, m, n, ceil_div(k, int64_t{2})}, a, b, c);
}

void host_gemm(HostPool& pool, const GemmProblem& problem) {
    const auto& [batch, m, n, k, a, b, c, ldc, stride_c, alpha, beta, small_integers] = problem;
    if (batch <= 0 || m <= 0 || n <= 0) return;
    if (small_integers) {
        const GemmMatrix from_a = matrix_of(a), from_b = matrix_of(b, true);
        const PairPanels panels(GemmSide::b, batch, m, n, k);
        const GemmPairs pairs(from_b, k);
        const GemmPackedPairs packed(panels, b.data);
        const GemmSource& right = b.packed ? static_cast<const GemmSource&>(packed) : pairs;
        return host_gemm_pairs(pool, batch, m, n, k, GemmPairs(from_a, k), right,
                               GemmMatrixSink(c, ldc, stride_c, alpha, beta));
    }
    // With few rows and a matrix stored along K, reading the matrix takes most of the time, and
    // packing would double it.
    if (m <= 3 && b.transposed && k > 0 && (!a.transposed || (m == 1 && a.ld == 1)))
        return multiply_few_rows(pool, problem);
    host_gemm(pool, batch, m, n, k, matrix_of(a), matrix_of(b, true),
              GemmMatrixSink(c, ldc, stride_c, alpha, beta));
}

}  // namespace dlprim
