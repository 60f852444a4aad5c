// SPDX-License-Identifier: MIT
// What the wgmma_half and mma_half engines share: products of images that are stored as halves or
// bfloat16, by one of NVIDIA's matrix units (kernels/matrix/copies16.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/stored16_tile.hpp"
#include "engine/matrix/stored16_weights.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// No, with the reason, unless the device has the unit, for `product`, which is multiplied, and for
/// what the output is stored in, and the problem one group and sizes that 32 bits count. What other
/// operands are stored in does not matter.
Verdict stored16_size_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                              DType product);
/// Where a job's weights lie in the plain tensor.
WeightSource source_of(const DenseJob& job);
/// The packed weights of all jobs, one behind the other.
Layout stored16_weights_layout(const std::vector<DenseJob>& jobs, DType dtype, std::int64_t block);
/// From the plain weights (operand 0) to the packed ones (operand 1).
std::unique_ptr<Launch> pack_stored16_weights(ContextImpl& context,
                                              const std::vector<DenseJob>& jobs, DType dtype,
                                              std::int64_t block);

/// Adds the call that makes a filter gradient from `count` parts in the workspace
/// (kernels/conv2d/stored16_filter_sum.cl).
void add_stored16_filter_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                             std::int64_t count, std::int64_t taps, std::int64_t channels);
constexpr const char* stored16_filter_sum_source = "conv2d/stored16_filter_sum.cl";

}  // namespace dlprim::conv2d
