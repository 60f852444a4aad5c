// SPDX-License-Identifier: MIT
// The register-tile kernels of host_gemm, for the processor that is found at run time.
#pragma once

#include <cstdint>

namespace dlprim {

struct HostGemmKernels {
    int rows;     ///< of a register tile
    int columns;  ///< of a register tile
    /// tile[i * columns + j] = sum over p < depth of a[p * rows + i] * b[p * columns + j], in the
    /// order of p. `b` and `tile` are aligned to 64 bytes.
    void (*multiply)(std::int64_t depth, const float* a, const float* b, float* tile);
    /// The same with A as it is stored, row i from a[i * stride] on, for products in which packing
    /// A would not pay.
    void (*multiply_rows)(std::int64_t depth, const float* a, std::int64_t stride, const float* b,
                          float* tile);
    /// The sum of a[p] * b[p], in an order that depends on `count` only.
    float (*dot)(std::int64_t count, const float* a, const float* b);
};

/// The largest tile of all processors, for the size of buffers.
constexpr int host_gemm_max_rows = 12, host_gemm_max_columns = 32;

const HostGemmKernels& host_gemm_kernels();

/// Products of small integers. A word, which has the memory of a float, holds the elements 2p (low
/// half) and 2p + 1 of K as 16-bit integers. multiply() sums their products as 32-bit integers,
/// which are exact if factors are at most 2047 in magnitude and a block of K has 256 words, and
/// writes them as floats. Products with few rows have tiles of one row.
struct HostPairKernels {
    HostGemmKernels tiles, lines;  ///< without multiply_rows() and dot()
    /// to[i] = the word of even[i] and odd[i], which are whole numbers of 16 bits.
    void (*join)(std::int64_t count, const float* even, const float* odd, float* to);

    static constexpr std::int64_t few_rows = 3;
    const HostGemmKernels& of(std::int64_t rows) const { return rows <= few_rows ? lines : tiles; }
};

const HostPairKernels& host_pair_kernels();

/// to[p * width + i] = from[i * stride + p] for i < count and p < depth, and zeros for count <= i <
/// width. Packs a panel from rows that are stored along K.
void pack_rows(const float* from, std::int64_t stride, int count, int width, std::int64_t depth,
               float* to);

}  // namespace dlprim
