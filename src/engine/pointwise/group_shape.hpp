// SPDX-License-Identifier: MIT
// The shape of a kernel for GPUs: what a work-item and a work-group own. Settled before any text is
// written (group_kernel.cpp).
//
//   elementwise   a work-item owns `width` neighbours of the last dimension
//   reduction     a work-group owns kx kept positions; ry threads share the elements of each, and
//                 take turns of `width` neighbours; get_group_id(1) counts parts of the reduction
//
// The sums over [64, 32, 56, 56] of the axes 0, 2 and 3, which make a job of [64, 32, 3136], for
// work-groups of 256 on 132 compute units: width 4, kx 1, ry 256, and 32 groups, each in 24 parts.
#pragma once

#include "engine/pointwise/job.hpp"
#include "runtime/program.hpp"

#include <dlprim/context.hpp>

#include <cstdint>
#include <vector>

namespace dlprim::pointwise {

struct GroupShape {
    bool reduces = false;
    bool inner_reduced = false;  ///< the last dimension is one of the reduction's
    int last = 0;                ///< the innermost dimension
    int width = 1;               ///< elements of a work-item at once: 1, or 4 neighbours
    bool tail = false;           ///< the last vector of the last dimension may be cut
    std::vector<int> kept_dims;  ///< without a reduction all dimensions are kept
    std::vector<int> reduced_dims;

    std::int64_t items = 0;      ///< elementwise: work-items that are needed
    std::int64_t kept = 1;       ///< reduction: kept positions
    std::int64_t reduction = 1;  ///< vectors, or elements, that make a result
    std::int64_t kx = 1;         ///< kept positions of a work-group
    std::int64_t ry = 1;         ///< threads of a kept position; a power of two
    std::int64_t parts = 1;
    NDRange range;

    /// Positions of the innermost reduced dimension that a turn takes.
    int unit() const { return inner_reduced ? width : 1; }
    /// Results go to the workspace, a set for each part.
    bool partial() const { return reduces && parts > 1; }
};

/// `parts` as group_kernel() takes it.
GroupShape group_shape(const Job& job, const Traits& device, std::int64_t parts);

}  // namespace dlprim::pointwise
