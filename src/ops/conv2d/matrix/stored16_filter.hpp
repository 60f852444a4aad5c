// SPDX-License-Identifier: MIT
// The product behind the filter gradients of images in 16 bits: its size, how K is split, and its
// call (kernels/conv2d/stored16_filter.cl).
#pragma once

#include "engine/matrix/stored16_tile.hpp"
#include "ops/conv2d/gpu.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dlprim::conv2d {

constexpr const char* stored16_filter_source = "conv2d/stored16_filter.cl";

/// Rows are output channels, and columns are pairs of input channel and tap.
std::vector<Stored16Tile> stored16_filter_tiles(MatrixUnit unit, const Traits& device);
Stored16Size stored16_filter_size(const Geometry& g);

/// How the steps of K are divided between launches' work-groups.
struct FilterParts {
    std::int64_t count, steps;
    FilterParts(const Geometry& g, const Tuning& tuning);
};

/// What tells the calls of the product from each other.
struct Stored16FilterCall {
    MatrixUnit unit;
    int kind;     ///< of x and dy (stored16_kind)
    bool direct;  ///< the sums are the gradient: one part, one tap, with the problem's epilogue
    /// Binds the arguments x, dy and dweight.
    std::function<void(KernelCall&)> bind;
};
void add_stored16_filter(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                         const Tuning& tuning, const Stored16FilterCall& how);

}  // namespace dlprim::conv2d
