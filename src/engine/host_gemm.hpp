// SPDX-License-Identifier: MIT
// host_gemm: threaded fp32 matrix products on the host, shared by the host engines of convolution
// and of matrix products.
//
// Panels of the operands are packed into thread-local buffers (allocated once per thread, some
// hundred KiB). A register-tile kernel multiplies them. It is chosen at run time for the processor:
// AVX-512, AVX2, or the compiler's baseline. K is summed in blocks of a fixed size, in order, and
// never divided among threads, so results do not depend on the number of threads.
#pragma once

#include "runtime/host_pool.hpp"

#include <cstdint>

namespace dlprim {

/// C = alpha op(A) op(B) + beta C, row-major. op(A) is m x k: element (i, p) is a[i * lda + p], or
/// a[p * lda + i] with transpose_a; likewise op(B), k x n. With beta = 0, C is not read. C must not
/// overlap A or B. Must not be called from inside a parallel_for body.
void host_gemm(HostPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
               std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
               std::int64_t ldb, float beta, float* c, std::int64_t ldc);

/// `batch` products. Consecutive operands are stride_a, stride_b and stride_c elements apart.
/// stride_a or stride_b may be 0, which means the same matrix for all.
void host_gemm_batched(HostPool& pool, std::int64_t batch, bool transpose_a, bool transpose_b,
                       std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
                       std::int64_t lda, std::int64_t stride_a, const float* b, std::int64_t ldb,
                       std::int64_t stride_b, float beta, float* c, std::int64_t ldc,
                       std::int64_t stride_c);

/// An operand that is not stored as a matrix (such as the image patches of a convolution) and is
/// provided panel by panel.
class GemmSource {
  public:
    virtual ~GemmSource() = default;
    /// Writes to[p * width + i] = element (first + i, k_first + p) of product `batch` for i < count
    /// and p < depth, and zeros for count <= i < width. The first index is the row for A, and the
    /// column for B.
    virtual void pack(std::int64_t batch, std::int64_t first, int count, int width,
                      std::int64_t k_first, std::int64_t depth, float* to) const = 0;
};

/// Receives a product tile by tile.
class GemmSink {
  public:
    virtual ~GemmSink() = default;
    /// tile[i * ld + j] is the sum over one block of K for element (row + i, column + j) of C, for
    /// i < rows and j < columns. One thread delivers the blocks of a tile in order. The
    /// `first_block` replaces the element, and others add to it. After the `last_block` the element
    /// is complete.
    virtual void store(std::int64_t batch, std::int64_t row, int rows, std::int64_t column,
                       int columns, const float* tile, int ld, bool first_block,
                       bool last_block) const = 0;
};

/// A stored matrix as an operand: element (i, p) of product b is data[b * stride + i * step + p *
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

/// A stored matrix as a result: C = alpha * product + beta * C. Product b is stored at c + b *
/// stride.
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

/// Writes `batch` products of sources to a sink. With k = 0 it stores tiles of zeros.
void host_gemm(HostPool& pool, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
               const GemmSource& a, const GemmSource& b, const GemmSink& c);

}  // namespace dlprim
