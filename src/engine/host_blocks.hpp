// SPDX-License-Identifier: MIT
// Kernels of the host for weights in GGUF's blocks, for the processor that is found at run time:
// AVX2, or the compiler's baseline.
#pragma once

#include "base/blocks.hpp"
#include "engine/host_gemm.hpp"

#include <cstddef>
#include <cstdint>

namespace dlprim {

struct HostBlockKernels {
    /// The sum of x[i] * weight[i], in an order that depends on `weights` only, which is a whole
    /// number of blocks (block_size()).
    float (*dot)(std::int64_t weights, const float* x, const std::byte* blocks);
    void (*unpack)(std::int64_t weights, const std::byte* blocks, float* to);
};

/// Of a type that block_type() knows. They live as long as the process.
const HostBlockKernels& host_block_kernels(const GgufType& type);

/// Rows of weights in blocks as an operand of host_gemm(), which are unpacked as they are packed.
class GemmBlocks : public GemmSource {
  public:
    /// Rows of k weights, `row_bytes` apart.
    GemmBlocks(const GgufType& type, const std::byte* data, std::int64_t row_bytes)
        : kernels_(host_block_kernels(type)),
          size_(block_size(type)),
          data_(data),
          row_bytes_(row_bytes) {}
    /// `k_first` is a multiple of 256, as blocks of host_gemm() are.
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const HostBlockKernels& kernels_;
    BlockSize size_;
    const std::byte* data_;
    std::int64_t row_bytes_;
};

}  // namespace dlprim
