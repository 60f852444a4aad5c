// SPDX-License-Identifier: MIT
// The two shapes of generated pointwise-and-reduce kernels.
//
//   vector   one work-item walks many elements with explicit vectors: CPUs
//   group    work-groups, reductions as trees in local memory: GPUs
//
// A reduction with few results and many elements is cut in `parts`: a first kernel leaves [parts,
// results] partial results in the workspace, a second (the same generator over those) combines
// them. The order of all sums is fixed by shape and traits.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "runtime/program.hpp"

#include <dlprim/context.hpp>

namespace dlprim::pointwise {

enum class Style : unsigned char { vector, group };

/// A kernel's text, numbers and range.
struct Generated {
    std::string source;
    std::vector<KernelNumber> numbers;
    NDRange range;
    std::int64_t parts = 1;
    std::size_t partial_bytes = 4;  ///< of an element of the workspace
};

/// `parts` 0: choose; 1: results are final. With more, outputs go to the workspace: output k's
/// partials to w<k>, flags of custom reductions to f<k> (both of the compute type). `text` false:
/// leave the source empty (for sizes alone).
Generated vector_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text = true);
Generated group_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text = true);

/// What combines the partial results of `job`; its operands 0.. are the workspace regions in the
/// order of workspace_regions(), outputs keep their operands.
Job second_stage(const Job& job, std::int64_t parts);

/// A region of the workspace: which output's partials (or flags) lie there.
struct Region {
    std::size_t output;
    bool flag;
};
std::vector<Region> workspace_regions(const Job& job);

}  // namespace dlprim::pointwise
