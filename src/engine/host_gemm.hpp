// SPDX-License-Identifier: MIT
// host_gemm: threaded fp32 matrix products on the host, shared by the host engines of convolution
// and of matrix products.
//
// Panels of the operands are packed into thread-local buffers (made once a thread, some hundred
// KiB) and multiplied by a register-tile kernel for the processor found at run time (AVX-512, AVX2,
// or whatever the compiler's baseline is). K is summed in blocks of a fixed size, in order, and
// never split between threads: results do not depend on the number of threads.
#pragma once

#include "runtime/host_pool.hpp"

#include <cstdint>

namespace dlprim {

/// C = alpha op(A) op(B) + beta C, row-major. op(A) is m x k: element (i, p) at a[i * lda + p], or
/// at a[p * lda + i] when transpose_a; likewise op(B), k x n. beta 0 does not read C. C overlaps
/// neither A nor B. Not to be called from inside a parallel_for body.
void host_gemm(HostPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
               std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
               std::int64_t ldb, float beta, float* c, std::int64_t ldc);

/// `batch` products whose operands lie stride_a, stride_b, stride_c elements apart; stride_a or
/// stride_b may be 0 (the same matrix for all).
void host_gemm_batched(HostPool& pool, std::int64_t batch, bool transpose_a, bool transpose_b,
                       std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                       std::int64_t lda, std::int64_t stride_a, const float* b, std::int64_t ldb,
                       std::int64_t stride_b, float beta, float* c, std::int64_t ldc,
                       std::int64_t stride_c);

/// One operand of a product that is not stored as a matrix (a convolution's image patches), given
/// panel by panel.
class GemmSource {
  public:
    virtual ~GemmSource() = default;
    /// Writes to[p * width + i] = element (first + i, k_first + p) of product `batch` for i <
    /// count, p < depth, and zeros for count <= i < width. For A the first index is the row, for B
    /// the column.
    virtual void pack(std::int64_t batch, std::int64_t first, int count, int width,
                      std::int64_t k_first, std::int64_t depth, float* to) const = 0;
};

/// Where a product goes, tile by tile.
class GemmSink {
  public:
    virtual ~GemmSink() = default;
    /// tile[i * ld + j] is the sum over one block of K for C's element (row + i, column + j), i <
    /// rows, j < columns. Blocks of one tile come in order from one thread; `first_block` replaces
    /// what was there, others add to it; with `last_block` the element is complete.
    virtual void store(std::int64_t batch, std::int64_t row, int rows, std::int64_t column,
                       int columns, const float* tile, int ld, bool first_block,
                       bool last_block) const = 0;
};

/// A stored matrix as an operand: element (i, p) of product b at data[b * stride + i * step + p *
/// k_step].
class GemmMatrix : public GemmSource {
  public:
    GemmMatrix(const float* data, std::int64_t step, std::int64_t k_step, std::int64_t stride)
        : data_(data), step_(step), k_step_(k_step), stride_(stride) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const float* data_;
    std::int64_t step_, k_step_, stride_;
};

/// A stored matrix as a result: C = alpha * product + beta * C; product b at c + b * stride.
class GemmMatrixSink : public GemmSink {
  public:
    GemmMatrixSink(float* c, std::int64_t ldc, std::int64_t stride, float alpha, float beta)
        : c_(c), ldc_(ldc), stride_(stride), alpha_(alpha), beta_(beta) {}
    void store(std::int64_t batch, std::int64_t row, int rows, std::int64_t column, int columns,
               const float* tile, int ld, bool first_block, bool last_block) const override;

  private:
    float* c_;
    std::int64_t ldc_, stride_;
    float alpha_, beta_;
};

/// `batch` products of sources into a sink. k 0 stores zero tiles.
void host_gemm(HostPool& pool, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
               const GemmSource& a, const GemmSource& b, const GemmSink& c);

}  // namespace dlprim
