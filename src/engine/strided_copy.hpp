// SPDX-License-Identifier: MIT
// Strided copy: elements moved between two arrays by sizes and strides, as raw bits: what Concat,
// Slice, Transpose and Pad are made of, on OpenCL and on the host.
//
// Elements are 1, 2, 4 or 8 bytes wide. Dimensions that lie together on both sides are merged, so a
// caller describes the copy as it comes. A copy without elements adds nothing.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>

namespace dlprim {

/// y[y_offset + sum i_d * y_strides[d]] = x[x_offset + sum i_d * x_strides[d]] for all i_d <
/// sizes[d]. Strides and offsets count elements; at most Shape::max_rank dimensions.
struct StridedCopy {
    Ints sizes, x_strides, y_strides;
    std::int64_t x_offset = 0, y_offset = 0;
    std::size_t element_bytes = 4;
};

/// The same copy with dimensions of size 1 dropped, the rest ordered by falling y stride and merged
/// where they are contiguous on both sides.
StridedCopy merged(const StridedCopy& copy);

/// Adds the kernel call from operand `x` to operand `y`.
void add_copy(KernelLaunch& launch, ContextImpl& context, const StridedCopy& copy, int x, int y);
void host_copy(HostPool& pool, const StridedCopy& copy, const std::byte* x, std::byte* y);

/// y = x with `before[d]` elements in front of dimension d; where y is longer than x by more than
/// that, the rest stands behind; before may be negative, and y shorter: x is then cropped.
struct PaddedCopy {
    enum class Mode { constant, reflect, replicate, circular };
    Ints x_sizes, y_sizes, before;  ///< both arrays are row-major without gaps
    Mode mode = Mode::constant;
    std::size_t element_bytes = 4;
    std::uint64_t fill = 0;  ///< the constant's bits
};

PaddedCopy merged(const PaddedCopy& copy);
void add_copy(KernelLaunch& launch, ContextImpl& context, const PaddedCopy& copy, int x, int y);
void host_copy(HostPool& pool, const PaddedCopy& copy, const std::byte* x, std::byte* y);

/// No, unless the problem asks for what copies do: no epilogue, and one type throughout.
Verdict copy_verdict(const Problem& problem);

/// The kernel file that add_copy compiles, for Engine::sources().
constexpr const char* strided_copy_source = "engine/strided_copy.cl";

/// Bytes moved over the bandwidth and a launch for each call: the estimate of engines made of
/// copies.
double copy_seconds(const Traits& device, const Problem& problem, int calls = 1);

}  // namespace dlprim
