// SPDX-License-Identifier: MIT
// What the wgmma_half and mma_half engines share. They multiply images in half or bfloat16 on one
// of NVIDIA's matrix units (kernels/matrix/copies16.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/stored16_tile.hpp"
#include "engine/matrix/stored16_weights.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// Returns yes if the device's unit works for the type `product`, which is multiplied, and for the
/// type of the output, and if the problem has a single group and sizes that fit into 32-bit
/// indices; else no, with the reason. The types of other operands do not matter.
Verdict stored16_size_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                              DType product);
/// Returns where a job's weights are in the plain tensor.
WeightSource source_of(const DenseJob& job);
/// Returns the layout of the packed weights of all jobs, one after the other.
Layout stored16_weights_layout(const std::vector<DenseJob>& jobs, DType dtype, std::int64_t block);
/// Returns the launch that packs the plain weights (operand 0) into operand 1.
std::unique_ptr<Launch> pack_stored16_weights(ContextImpl& context,
                                              const std::vector<DenseJob>& jobs, DType dtype,
                                              std::int64_t block);

/// Adds the call that computes a filter gradient from `count` parts in the workspace
/// (kernels/conv2d/stored16_filter_sum.cl).
void add_stored16_filter_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                             std::int64_t count, std::int64_t taps, std::int64_t channels);
constexpr const char* stored16_filter_sum_source = "conv2d/stored16_filter_sum.cl";

}  // namespace dlprim::conv2d
