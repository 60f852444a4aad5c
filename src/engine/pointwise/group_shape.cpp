// SPDX-License-Identifier: MIT
// How kernels for GPUs divide work among work-groups and threads.
#include "engine/pointwise/group_shape.hpp"

#include "base/integers.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

constexpr std::uint64_t largest_group = 256;
/// With at most this many steps per thread, the second launch would cost more than a division
/// saves.
constexpr std::int64_t few_steps = 16;
/// With more steps per thread than this, a reduction is always divided.
constexpr std::int64_t most_steps = 1024;
/// The number of work-groups per compute unit that a division aims at.
constexpr std::int64_t groups_per_unit = 8;

std::int64_t inner_size(const GroupShape& shape, const Job& job) {
    return job.sizes[static_cast<std::size_t>(shape.last)];
}

/// 4 if neighbours are contiguous, or the same element, in every class; else 1.
int vector_width(const GroupShape& shape, const Job& job) {
    for (const auto& strides : job.classes)
        if (strides[static_cast<std::size_t>(shape.last)] > 1) return 1;
    const std::int64_t inner = inner_size(shape, job);
    if (!shape.reduces) return inner % 4 == 0 || (job.dims() == 1 && inner >= 1024) ? 4 : 1;
    return shape.inner_reduced && inner % 4 == 0 && job.reduction() >= 1024 ? 4 : 1;
}

void assign_dims(GroupShape& shape, const Job& job) {
    shape.reduces = job.reduces();
    shape.last = job.dims() - 1;
    for (int dim = 0; dim < job.dims(); ++dim) {
        const bool reduced = shape.reduces && job.reduced[static_cast<std::size_t>(dim)];
        (reduced ? shape.reduced_dims : shape.kept_dims).push_back(dim);
    }
    shape.inner_reduced = shape.reduces && job.reduced[static_cast<std::size_t>(shape.last)];
    shape.width = vector_width(shape, job);
    shape.tail = inner_size(shape, job) % shape.width != 0;
}

void cut_elementwise(GroupShape& shape, const Job& job, std::int64_t largest) {
    const std::int64_t inner = inner_size(shape, job);
    const std::int64_t elements = job.kept() * job.reduction();
    shape.items = elements / inner * ceil_div(inner, shape.width);
    const std::int64_t local = std::min(largest, power_above(shape.items));
    shape.range.local[0] = static_cast<std::size_t>(local);
    shape.range.global[0] = static_cast<std::size_t>(ceil_div(shape.items, local) * local);
}

/// The largest work-group whose partial results fit into three quarters of the local memory.
std::int64_t fitting_local(const Job& job, const Traits& device, std::int64_t largest) {
    std::uint64_t bytes = 0;  // per thread
    for (const JobOutput& out : job.outputs)
        if (out.reduces())
            bytes += size_of(dtype_of(job.type)) * (out.kind == Output::Kind::custom ? 2 : 1);
    if (device.local_bytes == 0) return largest;
    while (largest > 1 && bytes * static_cast<std::uint64_t>(largest) * 4 > device.local_bytes * 3)
        largest /= 2;
    return largest;
}

/// The number of parts of a reduction: one if there are enough work-groups or little work per
/// thread.
std::int64_t choose_parts(const GroupShape& shape, std::int64_t groups, const Traits& device) {
    const std::int64_t wanted = groups_per_unit * std::max(1, device.compute_units);
    const std::int64_t most = std::max<std::int64_t>(1, shape.reduction / (shape.ry * 8));
    std::int64_t parts =
        std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(1, groups), 1, most);
    // Two work-groups per compute unit have enough loads in flight.
    if (groups * 4 >= wanted || shape.reduction <= shape.ry * few_steps) parts = 1;
    return std::max(parts, ceil_div(shape.reduction, shape.ry * most_steps));
}

void cut_reduction(GroupShape& shape, const Job& job, const Traits& device, std::int64_t largest,
                   std::int64_t parts) {
    largest = fitting_local(job, device, largest);
    shape.kept = job.kept();
    shape.reduction = job.reduction() / shape.unit();
    if (!shape.inner_reduced)
        shape.kx = std::min<std::int64_t>({32, largest, power_above(inner_size(shape, job))});
    shape.ry =
        std::min(largest / shape.kx, power_below(std::max<std::int64_t>(1, shape.reduction / 4)));
    shape.kx = std::max(shape.kx, std::min(largest / shape.ry, power_above(shape.kept)));
    const std::int64_t groups = ceil_div(shape.kept, shape.kx);
    if (parts == 0) parts = choose_parts(shape, groups, device);
    shape.parts = std::max<std::int64_t>(1, std::min(parts, shape.reduction));
    const std::int64_t local = shape.kx * shape.ry;
    shape.range.dims = 2;
    shape.range.local = {static_cast<std::size_t>(local), 1, 0};
    shape.range.global = {static_cast<std::size_t>(groups * local),
                          static_cast<std::size_t>(shape.parts), 1};
}

}  // namespace

GroupShape group_shape(const Job& job, const Traits& device, std::int64_t parts) {
    GroupShape shape;
    assign_dims(shape, job);
    const std::uint64_t allowed =
        std::clamp<std::uint64_t>(device.max_work_group, 1, largest_group);
    const std::int64_t largest = power_below(static_cast<std::int64_t>(allowed));
    if (shape.reduces)
        cut_reduction(shape, job, device, largest, parts);
    else
        cut_elementwise(shape, job, largest);
    return shape;
}

}  // namespace dlprim::pointwise
