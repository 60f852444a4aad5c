// SPDX-License-Identifier: MIT
// The shape of a kernel for CPUs: what a job's dimensions are used for and how its work is cut up.
// Settled before any text is written (vector_kernel.cpp).
//
//   iteration space   units x rows x main loop x lanes
//   row               one pass of the main loop over a segment of its dimension
//   part              a range of rows; without a reduction all dimensions are rows
//   task              a part of a unit; work-items take contiguous shares of the tasks
//
// The sums over [4, 32, 56, 56] of the axes 0, 2 and 3, which make a job of [4, 32, 3136], for 8
// lanes: 32 units, rows along dimension 0, a main loop over dimension 2 in steps of 8.
#pragma once

#include "engine/pointwise/job.hpp"

#include <dlprim/context.hpp>

#include <cstdint>
#include <vector>

namespace dlprim::pointwise {

/// Kept vectors that a work-item sums side by side.
constexpr int max_vectors = 16;

struct VectorShape {
    // What dimensions are used for.
    bool reduces = false;
    int last = 0;             ///< the innermost dimension, which gives the lanes
    int width = 16;           ///< lanes of a vector
    bool inner_kept = false;  ///< the lanes are kept positions of a reduction
    bool one_vector = false;  ///< the last dimension is one vector (blocked layouts)
    bool multi = false;       ///< kept vectors side by side, in a loop inside the main loop
    int loop = -1;            ///< dimension of the main loop; -1: one pass
    std::vector<int> units;   ///< dimensions of a unit's coordinates: kept ones
    std::vector<int> rows;    ///< dimensions of a row's coordinates

    // How many there are.
    std::int64_t chunks = 1;     ///< multi: groups of max_vectors vectors in the last dimension
    std::int64_t length = 1;     ///< of the main loop's dimension
    std::int64_t loop_step = 1;  ///< of the main loop: a vector or one position
    std::int64_t segment = 1;    ///< positions of the main loop's dimension in a row
    std::int64_t segments = 1;   ///< rows per coordinate of the row dimensions
    std::int64_t all_rows = 1;   ///< of a unit
    std::int64_t parts = 1;      ///< of a unit
    std::int64_t tasks = 1;      ///< units times parts
    std::int64_t work_items = 1;

    /// Elements of the last dimension that a unit has, where `multi`.
    std::int64_t chunk() const { return std::int64_t{max_vectors} * width; }
    /// Results go to the workspace, a set for each part.
    bool partial() const { return reduces && parts > 1; }
    /// Vectors may be cut at the end of the last dimension.
    bool tail() const { return loop == last || multi; }
};

/// `parts` as vector_kernel() takes it.
VectorShape vector_shape(const Job& job, const Traits& device, std::int64_t parts);

}  // namespace dlprim::pointwise
