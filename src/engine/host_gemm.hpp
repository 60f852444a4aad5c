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

/// A stored matrix that products read, row-major: row i begins at data[i * ld].
struct GemmOperand {
    const float* data;
    std::int64_t ld;
    std::int64_t stride = 0;  ///< elements from one product's matrix to the next; 0: one for all
    bool transposed = false;  ///< the product reads the transpose
    bool packed = false;      ///< `data` are the panels of pack_pairs() instead
};

/// C = alpha op(A) op(B) + beta C for `batch` products. op(A), which is A or its transpose, is
/// m x k, and op(B) is k x n. Row i of C begins at c[i * ldc], and C of product b at
/// c + b * stride_c. With beta = 0, C is not read. C must not overlap A or B.
struct GemmProblem {
    std::int64_t batch, m, n, k;
    GemmOperand a, b;
    float* c;
    std::int64_t ldc, stride_c;
    float alpha = 1, beta = 0;
    bool small_integers = false;  ///< A and B hold integers of at most 2047 in magnitude
};

/// Must not be called from inside a parallel_for body.
void host_gemm(HostPool& pool, const GemmProblem& problem);

/// An operand that is not stored as a matrix (such as the image patches of a convolution) and is
/// provided panel by panel.
class GemmSource {
  public:
    virtual ~GemmSource() = default;
    /// The calling thread will pack panels of columns [first, first + count) and of K from k_first
    /// on. For B only.
    virtual void prepare(std::int64_t /*batch*/, std::int64_t /*first*/, std::int64_t /*count*/,
                         std::int64_t /*k_first*/, std::int64_t /*depth*/) const {}
    /// Writes to[p * width + i] = element (first + i, k_first + p) of product `batch` for i < count
    /// and p < depth, and zeros for count <= i < width. The first index is the row for A, and the
    /// column for B.
    virtual void pack(std::int64_t batch, std::int64_t first, int count, int width,
                      std::int64_t k_first, std::int64_t depth, float* to) const = 0;

    /// Rows of a matrix that is stored along K: row `first` from `data` on, others `stride` apart.
    struct Rows {
        const float* data = nullptr;
        std::int64_t stride = 0;
    };
    /// Element (first, k_first) and those behind it. Without data they can only be packed.
    virtual Rows rows(std::int64_t /*batch*/, std::int64_t /*first*/,
                      std::int64_t /*k_first*/) const {
        return {};
    }
    /// What pack() would write, where it is stored already; else nullptr.
    virtual const float* panel(std::int64_t /*batch*/, std::int64_t /*first*/,
                               std::int64_t /*k_first*/) const {
        return nullptr;
    }
};

/// The sums over one block of K for a tile of C: sums[i * ld + j] belongs to element
/// (row + i, column + j) of product `batch`, for i < rows and j < columns.
struct TileSums {
    const float* sums;
    int ld;
    std::int64_t batch, row, column;
    int rows, columns;
    bool first_block;
};

/// Receives a product tile by tile.
class GemmSink {
  public:
    virtual ~GemmSink() = default;
    /// One thread delivers the blocks of a tile in order. The first block replaces the elements,
    /// and others add to them.
    virtual void store(const TileSums& tile) const = 0;
    /// The elements (row + i, column + j) of product `batch`, for i < rows and j < columns, are
    /// complete. These blocks cover the product; they are some hundred rows and columns, so that
    /// what is done to the elements here finds them in the cache.
    virtual void finish(std::int64_t /*batch*/, std::int64_t /*row*/, std::int64_t /*rows*/,
                        std::int64_t /*column*/, std::int64_t /*columns*/) const {}
};

/// A stored matrix as an operand: element (i, p) of product b is data[b * stride + i * step + p *
/// k_step].
class GemmMatrix : public GemmSource {
  public:
    GemmMatrix(const float* data, std::int64_t step, std::int64_t k_step, std::int64_t stride)
        : data_(data), step_(step), k_step_(k_step), stride_(stride) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;
    Rows rows(std::int64_t batch, std::int64_t first, std::int64_t k_first) const override {
        if (k_step_ != 1) return {};
        return {data_ + batch * stride_ + first * step_ + k_first, step_};
    }

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
    void store(const TileSums& tile) const override;

  private:
    float* c_;
    std::int64_t ldc_, stride_;
    float alpha_, beta_;
};

/// Writes `batch` products of sources to a sink. With k = 0 it stores tiles of zeros.
void host_gemm(HostPool& pool, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
               const GemmSource& a, const GemmSource& b, const GemmSink& c);

/// Another source's small integers as words of pairs (host_gemm_kernels.hpp), half as deep.
class GemmPairs : public GemmSource {
  public:
    /// `k`: the depth of the other source.
    GemmPairs(const GemmSource& from, std::int64_t k) : from_(from), k_(k) {}
    void prepare(std::int64_t batch, std::int64_t first, std::int64_t count, std::int64_t k_first,
                 std::int64_t depth) const override;
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const GemmSource& from_;
    std::int64_t k_;
};

/// Which operand of a product pack_pairs() packs.
enum class GemmSide : std::uint8_t { a, b };

/// The panels of pairs that an operand of small integers is packed to: m x k (A) or k x n (B) for
/// each of `batch` products. They depend on the processor and, of A, on m.
struct PairPanels {
    std::int64_t batch, count, k;  ///< count: m or n
    int width;                     ///< of a panel

    PairPanels(GemmSide side, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k);
    std::int64_t words() const { return (k + 1) / 2; }
    std::int64_t product_floats() const { return (count + width - 1) / width * width * words(); }
    std::int64_t floats() const { return batch * product_floats(); }
};
void pack_pairs(HostPool& pool, const PairPanels& panels, const GemmSource& from, float* to);

/// An operand that pack_pairs() has packed.
class GemmPackedPairs : public GemmSource {
  public:
    GemmPackedPairs(const PairPanels& panels, const float* data) : panels_(panels), data_(data) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;
    const float* panel(std::int64_t batch, std::int64_t first, std::int64_t k_first) const override;

  private:
    PairPanels panels_;
    const float* data_;
};

/// host_gemm() of sources of pairs (GemmPairs, GemmPackedPairs). `k` counts elements.
void host_gemm_pairs(HostPool& pool, std::int64_t batch, std::int64_t m, std::int64_t n,
                     std::int64_t k, const GemmSource& a, const GemmSource& b, const GemmSink& c);

}  // namespace dlprim
