// SPDX-License-Identifier: MIT
// The oracles of Unfold and Fold: the list of all pairs of a column's element and its pixel.
#include "graph/oracle_loops.hpp"
#include "ops/unfold/windows.hpp"

namespace dlprim::unfold {

namespace {

/// Calls visit(pixel, element of a column) wherever an element is not of the padding.
template <typename Visit>
void each_pair(const Windows& windows, Visit&& visit) {
    const auto& [down, across] = windows.axes;
    const Shape walk{windows.planes(), down.kernel, across.kernel, down.windows, across.windows};
    for_each_position(walk, [&](const std::vector<std::int64_t>& at, std::size_t column) {
        const std::int64_t y = at[3] * down.stride - down.pad + at[1] * down.dilate;
        const std::int64_t x = at[4] * across.stride - across.pad + at[2] * across.dilate;
        if (y < 0 || y >= down.size || x < 0 || x >= across.size) return;
        visit(static_cast<std::size_t>((at[0] * down.size + y) * across.size + x), column);
    });
}

HostArray zeros(const Shape& shape, DType dtype) {
    return {shape, std::vector<double>(static_cast<std::size_t>(shape.numel()), 0.0), dtype};
}

}  // namespace

void unfold_oracle(const Windows& windows, const HostArray& images, HostArray& columns) {
    columns = zeros(windows.columns(), images.dtype);
    each_pair(windows, [&](std::size_t pixel, std::size_t column) {
        columns.data[column] = images.data[pixel];
    });
}

void fold_oracle(const Windows& windows, const HostArray& columns, HostArray& images) {
    images = zeros(windows.images(), columns.dtype);
    each_pair(windows, [&](std::size_t pixel, std::size_t column) {
        images.data[pixel] += columns.data[column];
    });
}

}  // namespace dlprim::unfold
