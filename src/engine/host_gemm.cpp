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
            for (int64_t j = nb; j < ne && depth > 0; j += nr)
                b.pack(r.batch, j, static_cast<int>(std::min<int64_t>(nr, ne - j)), nr, kb, depth,
                       panels.b.get() + (j - nb) * depth);
            for (int64_t mb = r.m0; mb < r.m1; mb += block_m) {
                const int64_t me = std::min(r.m1, mb + block_m);
                for (int64_t i = mb; i < me && depth > 0; i += mr)
                    a.pack(r.batch, i, static_cast<int>(std::min<int64_t>(mr, me - i)), mr, kb,
                           depth, panels.a.get() + (i - mb) * depth);
                for (int64_t j = nb; j < ne; j += nr)
                    for (int64_t i = mb; i < me; i += mr) {
                        kernels.multiply(depth, panels.a.get() + (i - mb) * depth,
                                         panels.b.get() + (j - nb) * depth, tile);
                        c.store(r.batch, i, static_cast<int>(std::min<int64_t>(mr, me - i)), j,
                                static_cast<int>(std::min<int64_t>(nr, ne - j)), tile, nr, first,
                                last);
                    }
            }
        }
    }
}

}  // namespace

void GemmMatrix::pack(int64_t batch, int64_t first, int count, int width, int64_t k_first,
                      int64_t depth, float* to) const {
    const float* from = data_ + batch * stride_ + first * step_ + k_first * k_step_;
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

void GemmMatrixSink::store(int64_t batch, int64_t row, int rows, int64_t column, int columns,
                           const float* tile, int ld, bool first_block, bool) const {
    float* c = c_ + batch * stride_ + row * ldc_ + column;
    for (int i = 0; i < rows; ++i, c += ldc_, tile += ld) {
        if (!first_block)
            for (int j = 0; j < columns; ++j) c[j] += alpha_ * tile[j];
        else if (beta_ == 0)
            for (int j = 0; j < columns; ++j) c[j] = alpha_ * tile[j];
        else
            for (int j = 0; j < columns; ++j) c[j] = beta_ * c[j] + alpha_ * tile[j];
    }
}

void host_gemm(HostPool& pool, int64_t batch, int64_t m, int64_t n, int64_t k, const GemmSource& a,
               const GemmSource& b, const GemmSink& c) {
    if (batch <= 0 || m <= 0 || n <= 0) return;
    const HostGemmKernels& kernels = host_gemm_kernels();
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
                              std::min(m, (tm + 1) * step_m), tn * step_n,
                              std::min(n, (tn + 1) * step_n)};
            multiply_rectangle(kernels, r, k, a, b, c);
        }
    });
}

void host_gemm_batched(HostPool& pool, int64_t batch, bool transpose_a, bool transpose_b, int64_t m,
                       int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                       int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, float beta,
                       float* c, int64_t ldc, int64_t stride_c) {
    if (batch <= 0 || m <= 0 || n <= 0) return;
    // With few rows and a matrix stored along K, reading the matrix takes most of the time, and
    // packing would double it.
    if (m <= 3 && transpose_b && k > 0 && (!transpose_a || (m == 1 && lda == 1))) {
        const auto dot = host_gemm_kernels().dot;
        const int64_t grain = std::max<int64_t>(1, 65536 / (k * m));
        pool.parallel_for(batch * n, grain, [&](int64_t begin, int64_t end) {
            for (int64_t at = begin; at < end; ++at) {
                const int64_t i = at / n, j = at % n;
                for (int64_t row = 0; row < m; ++row) {
                    float& to = c[i * stride_c + row * ldc + j];
                    const float sum =
                        alpha * dot(k, a + i * stride_a + row * lda, b + i * stride_b + j * ldb);
                    to = beta == 0 ? sum : beta * to + sum;
                }
            }
        });
        return;
    }
    const GemmMatrix from_a(a, transpose_a ? 1 : lda, transpose_a ? lda : 1, stride_a);
    const GemmMatrix from_b(b, transpose_b ? ldb : 1, transpose_b ? 1 : ldb, stride_b);
    host_gemm(pool, batch, m, n, k, from_a, from_b, GemmMatrixSink(c, ldc, stride_c, alpha, beta));
}

void host_gemm(HostPool& pool, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               float alpha, const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
               float* c, int64_t ldc) {
    host_gemm_batched(pool, 1, transpose_a, transpose_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta,
                      c, ldc, 0);
}

}  // namespace dlprim
