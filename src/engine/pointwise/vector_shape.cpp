// SPDX-License-Identifier: MIT
// How kernels for CPUs use dimensions and divide work.
#include "engine/pointwise/vector_shape.hpp"

#include "base/integers.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

/// Elements from which on a task is worth starting.
constexpr std::int64_t task_elements = 4096;
/// Steps of the main loop in one row of a reduction.
constexpr std::int64_t segment_steps = 512;
/// Elements from which on rows of one vector get a program of their own.
constexpr std::int64_t large_tensor = 1 << 16;
/// Work-items per compute unit: enough that the load is balanced at the end.
constexpr std::int64_t workers_per_unit = 8;

std::int64_t size_of_dim(const Job& job, int dim) {
    return job.sizes[static_cast<std::size_t>(dim)];
}

bool is_reduced(const Job& job, int dim) {
    return job.reduced[static_cast<std::size_t>(dim)];
}

int native_lanes(const Job& job, const Traits& device) {
    int lanes = std::max(4, device.vector_width);
    if (job.type != Compute::f32) lanes = std::max(2, lanes / 2);
    return std::min(lanes, 16);
}

/// The main loop runs over the last dimension, unless that is kept or a single vector.
int loop_dim(const VectorShape& shape, const Job& job) {
    if (shape.inner_kept) {
        for (int dim = shape.last - 1; dim >= 0; --dim)
            if (is_reduced(job, dim)) return dim;
        return -1;
    }
    if (!shape.one_vector) return shape.last;
    return !shape.reduces || is_reduced(job, shape.last - 1) ? shape.last - 1 : -1;
}

/// Whether the last dimension is a single vector. In blocked layouts it is a block. Elsewhere a
/// program of its own for the width pays for large tensors alone: rows of 4, 8 and 16 elements take
/// it 0.1 ns an element, where the program of all sizes takes 0.8, 0.4 and 0.15 (PoCL, two cores).
bool is_one_vector(const Job& job, std::int64_t inner) {
    if (job.dims() == 1) return false;
    if (job.block > 0) return inner == job.block;
    const bool is_width = inner == 4 || inner == 8 || inner == 16;
    return is_width && job.kept() * job.reduction() >= large_tensor;
}

void assign_dims(VectorShape& shape, const Job& job, const Traits& device) {
    shape.reduces = job.reduces();
    shape.last = job.dims() - 1;
    shape.width = native_lanes(job, device);
    shape.inner_kept = shape.reduces && !is_reduced(job, shape.last);
    const std::int64_t inner = size_of_dim(job, shape.last);
    if (is_one_vector(job, inner)) {
        shape.one_vector = true;
        shape.width = static_cast<int>(inner);
    }
    shape.multi = shape.inner_kept && !shape.one_vector;
    shape.loop = loop_dim(shape, job);
    for (int dim = 0; dim < shape.last; ++dim) {
        if (dim == shape.loop) continue;
        const bool kept = shape.reduces && !is_reduced(job, dim);
        (kept ? shape.units : shape.rows).push_back(dim);
    }
}

/// Divides the main loop's dimension into segments: in reductions so that sums stay short, and
/// otherwise if there are fewer rows than wanted parts.
void cut_rows(VectorShape& shape, const Job& job, std::int64_t wanted_parts) {
    std::int64_t rows = 1;
    for (const int dim : shape.rows) rows *= size_of_dim(job, dim);
    std::int64_t segments = 1;
    if (shape.reduces) segments = ceil_div(shape.length, segment_steps * shape.loop_step);
    if (rows * segments < wanted_parts && rows > 0) segments = ceil_div(wanted_parts, rows);
    const std::int64_t steps = ceil_div(shape.length, shape.loop_step);
    segments = std::clamp<std::int64_t>(segments, 1, std::max<std::int64_t>(1, steps));
    const std::int64_t segment_positions = ceil_div(shape.length, segments);
    shape.segment =
        std::max(ceil_div(segment_positions, shape.loop_step), std::int64_t{1}) * shape.loop_step;
    segments = ceil_div(shape.length, shape.segment);
    shape.all_rows = rows * segments;
    shape.segments = std::max<std::int64_t>(1, segments);
}

}  // namespace

VectorShape vector_shape(const Job& job, const Traits& device, std::int64_t parts) {
    VectorShape shape;
    assign_dims(shape, job, device);
    std::int64_t units = 1;
    for (const int dim : shape.units) units *= size_of_dim(job, dim);
    if (shape.multi) shape.chunks = ceil_div(size_of_dim(job, shape.last), shape.chunk());
    units *= shape.chunks;
    shape.length = shape.loop < 0 ? 1 : size_of_dim(job, shape.loop);
    shape.loop_step = shape.loop == shape.last ? shape.width : 1;

    const std::int64_t elements = job.kept() * job.reduction();
    const std::int64_t workers = workers_per_unit * std::max(1, device.compute_units);
    const std::int64_t wanted_tasks =
        std::clamp<std::int64_t>(elements / task_elements, 1, workers);
    std::int64_t wanted_parts = wanted_tasks;
    if (shape.reduces) {
        wanted_parts = ceil_div(wanted_tasks, std::max<std::int64_t>(units, 1));
        if (units >= std::int64_t{2} * device.compute_units) wanted_parts = 1;
        if (parts > 0) wanted_parts = parts;
    }
    cut_rows(shape, job, wanted_parts);
    shape.parts = std::max<std::int64_t>(1, std::min(wanted_parts, shape.all_rows));
    shape.tasks = units * shape.parts;
    shape.work_items = std::min(shape.tasks, wanted_tasks);
    return shape;
}

}  // namespace dlprim::pointwise
