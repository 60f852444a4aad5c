// SPDX-License-Identifier: MIT
// The shape of a kernel for GPUs: what a work-item and a work-group compute. It is determined
// before any text is written (group_kernel.cpp).
//
//   elementwise   a work-item owns `width` neighbours of the last dimension
//   reduction     a work-group owns kx kept positions. ry threads share the elements of each and
//                 read `width` neighbours per iteration. get_group_id(1) is the part of the
//                 reduction
//
// Example: the sums over [64, 32, 56, 56] along axes 0, 2 and 3, which become a job of [64, 32,
// 3136], with work-groups of 256 on 132 compute units. Width is 4, kx 1, ry 256, and there are 32
// groups with 24 parts each.
#pragma once

#include "engine/pointwise/job.hpp"
#include "runtime/program.hpp"

#include <dlprim/context.hpp>

#include <cstdint>
#include <vector>

namespace dlprim::pointwise {

struct GroupShape {
    bool reduces = false;
    bool inner_reduced = false;  ///< whether the last dimension is reduced
    int last = 0;                ///< the innermost dimension
    int width = 1;               ///< elements that a work-item handles at once: 1, or 4 neighbours
    bool tail = false;           ///< the last vector of the last dimension may be partial
    std::vector<int> kept_dims;  ///< without a reduction all dimensions are kept
    std::vector<int> reduced_dims;

    std::int64_t items = 0;      ///< elementwise: number of work-items
    std::int64_t kept = 1;       ///< reduction: kept positions
    std::int64_t reduction = 1;  ///< vectors or elements per result
    std::int64_t kx = 1;         ///< kept positions per work-group
    std::int64_t ry = 1;         ///< threads per kept position; a power of two
    std::int64_t parts = 1;
    NDRange range;

    /// Positions of the innermost reduced dimension per iteration.
    int unit() const { return inner_reduced ? width : 1; }
    /// Whether results go to the workspace, one set per part.
    bool partial() const { return reduces && parts > 1; }
};

/// `parts` as in group_kernel().
GroupShape group_shape(const Job& job, const Traits& device, std::int64_t parts);

}  // namespace dlprim::pointwise
