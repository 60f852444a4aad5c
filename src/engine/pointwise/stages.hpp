// SPDX-License-Identifier: MIT
// Stages: the kernel launches of jobs, and the workspace for reductions in two stages.
#pragma once

#include "engine/launch.hpp"
#include "engine/pointwise/kernels.hpp"
#include "engine/pointwise/row_program.hpp"

namespace dlprim::pointwise {

/// Bytes of workspace. Jobs run one after the other and share it.
std::uint64_t stages_workspace(const std::vector<Job>& jobs, const Traits& device, Style style);
/// Compiles and adds the kernels of `jobs`, divided for `device`. `workspace` is the index of the
/// workspace operand.
void add_stages(KernelLaunch& launch, ContextImpl& context, const std::vector<Job>& jobs,
                const Traits& device, Style style, int workspace);
/// Compiles and adds the kernel of a program over rows.
void add_rows(KernelLaunch& launch, ContextImpl& context, const RowJob& rows, Style style);

}  // namespace dlprim::pointwise
