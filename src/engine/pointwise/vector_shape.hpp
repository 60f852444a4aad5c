// SPDX-License-Identifier: MIT
// The shape of a kernel for CPUs: how a job's dimensions are used and how its work is divided. It
// is determined before any text is written (vector_kernel.cpp).
//
//   iteration space   units x rows x main loop x lanes
//   row               one run of the main loop over a segment of its dimension
//   part              a range of rows; without a reduction all dimensions are rows
//   task              a part of a unit; a work-item processes a contiguous range of tasks
//
// Example: the sums over [4, 32, 56, 56] along axes 0, 2 and 3, which become a job of [4, 32,
// 3136], with 8 lanes. There are 32 units, rows along dimension 0, and a main loop over dimension 2
// in steps of 8.
#pragma once

#include "engine/pointwise/job.hpp"

#include <dlprim/context.hpp>

#include <cstdint>
#include <vector>

namespace dlprim::pointwise {

/// Kept vectors that a work-item reduces side by side.
constexpr int max_vectors = 16;

struct VectorShape {
    // The use of dimensions.
    bool reduces = false;
    int last = 0;             ///< the innermost dimension, which gives the lanes
    int width = 16;           ///< lanes of a vector
    bool inner_kept = false;  ///< the lanes are kept positions of a reduction
    bool one_vector = false;  ///< the last dimension is a single vector
    bool multi = false;       ///< several kept vectors, in a loop inside the main loop
    int loop = -1;            ///< dimension of the main loop; -1: a single step
    std::vector<int> units;   ///< dimensions of a unit's coordinates: kept ones
    std::vector<int> rows;    ///< dimensions of a row's coordinates

    // The numbers of everything.
    std::int64_t chunks = 1;     ///< multi: groups of max_vectors vectors in the last dimension
    std::int64_t length = 1;     ///< of the main loop's dimension
    std::int64_t loop_step = 1;  ///< of the main loop: a vector or one position
    std::int64_t segment = 1;    ///< positions of the main loop's dimension per row
    std::int64_t segments = 1;   ///< rows per coordinate of the row dimensions
    std::int64_t all_rows = 1;   ///< of a unit
    std::int64_t parts = 1;      ///< of a unit
    std::int64_t tasks = 1;      ///< units times parts
    std::int64_t work_items = 1;

    /// Elements of the last dimension per unit, if `multi`.
    std::int64_t chunk() const { return std::int64_t{max_vectors} * width; }
    /// Positions of the main loop that are summed without compensation. The error grows with the
    /// square root of the number of steps.
    std::int64_t run() const { return 32 * loop_step; }
    /// Whether the last vector of the last dimension may be partial.
    bool tail() const { return loop == last || multi; }
};

/// `parts` as in vector_kernel().
VectorShape vector_shape(const Job& job, const Traits& device, std::int64_t parts);

}  // namespace dlprim::pointwise
