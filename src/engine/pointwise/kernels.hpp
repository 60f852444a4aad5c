// SPDX-License-Identifier: MIT
// The two kinds of generated pointwise-and-reduce kernels.
//
//   vector   one work-item walks many elements with explicit vectors: CPUs
//   group    work-groups, reductions as trees in local memory: GPUs
//
// A reduction with few results and many elements is divided into `parts`. The first launch writes
// [parts, results] partial results to the workspace, and the second combines them. On CPUs both
// launches run one kernel, so that a tensor that is the first to have parts compiles nothing. On
// GPUs the second kernel is of the same generator. Shape and traits determine the order of all
// sums.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "runtime/program.hpp"

#include <dlprim/context.hpp>

namespace dlprim::pointwise {

enum class Style : unsigned char { vector, group };

/// Where the results of a kernel's reductions go: to y<k>, to the workspace w<k> (and f<k>, which
/// say whether a partial result of a custom reduction has a value), or to either, by its numbers.
enum class Results : unsigned char { final, partial, either };

/// The number that tells a kernel with Results::either that this is its second launch, whose
/// number of tasks is another.
constexpr const char* merging = "merging";

/// The text, numbers and range of a kernel.
struct Generated {
    std::string source;
    std::vector<KernelNumber> numbers;
    Results results = Results::final;
    NDRange range;
    std::int64_t merging_tasks = 1;  ///< of the second launch
    std::int64_t parts = 1;
    std::size_t partial_bytes = 4;  ///< of an element of the workspace
};

/// `parts`: 0 means choose, 1 means that results are final. With more, results go to the workspace:
/// partial results of output k to w<k>, and flags of custom reductions to f<k> (both in the compute
/// type). If `text` is false, the source stays empty (to compute sizes only).
Generated vector_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text = true);
Generated group_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text = true);

/// The job that combines the partial results of `job` on GPUs. Its first operands are the workspace
/// regions, in the order of workspace_regions(). Outputs keep their operands.
Job second_stage(const Job& job, std::int64_t parts);

/// A region of the workspace, for the partial results or the flags of one output.
struct Region {
    std::size_t output;
    bool flag;
};
std::vector<Region> workspace_regions(const Job& job);

}  // namespace dlprim::pointwise
