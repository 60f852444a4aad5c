// SPDX-License-Identifier: MIT
// Strided copy: copies elements between two arrays, described by sizes and strides, as raw bits.
// Concat, Slice, Transpose and Pad use it, on OpenCL and on the host.
//
// Elements have 1, 2, 4 or 8 bytes. Dimensions that are contiguous in both arrays are merged, so
// callers need not simplify the copy. A copy of no elements adds no call.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>

namespace dlprim {

/// y[y_offset + sum i_d * y_strides[d]] = x[x_offset + sum i_d * x_strides[d]] for all i_d <
/// sizes[d]. Strides and offsets are in elements; strides of x may be negative. At most
/// Shape::max_rank dimensions.
struct StridedCopy {
    Ints sizes, x_strides, y_strides;
    std::int64_t x_offset = 0, y_offset = 0;
    std::size_t element_bytes = 4;
};

/// The same copy without dimensions of size 1. The others are sorted by descending y stride, and
/// merged where they are contiguous in both arrays.
StridedCopy merged(const StridedCopy& copy);

/// Adds the kernel call that copies operand `x` to operand `y`.
void add_copy(KernelLaunch& launch, ContextImpl& context, const StridedCopy& copy, int x, int y);
void host_copy(HostPool& pool, const StridedCopy& copy, const std::byte* x, std::byte* y);

/// y is x with `before[d]` elements added in front of dimension d, and with as many after it as y's
/// size requires. Negative numbers crop x.
struct PaddedCopy {
    enum class Mode { constant, reflect, replicate, circular };
    Ints x_sizes, y_sizes, before;  ///< both arrays are row-major without gaps
    Mode mode = Mode::constant;
    std::size_t element_bytes = 4;
    std::uint64_t fill = 0;  ///< bits of the constant
};

PaddedCopy merged(const PaddedCopy& copy);
void add_copy(KernelLaunch& launch, ContextImpl& context, const PaddedCopy& copy, int x, int y);
void host_copy(HostPool& pool, const PaddedCopy& copy, const std::byte* x, std::byte* y);

/// Yes if the problem only copies: it has no epilogue, and all operands have the same type.
Verdict copy_verdict(const Problem& problem);
/// The same where only the first `moved` inputs are copied; others are indices.
Verdict copy_verdict(const Problem& problem, std::size_t moved);

/// The kernel file of add_copy, for Engine::sources().
constexpr const char* strided_copy_source = "engine/strided_copy.cl";

/// OpenCL's type for elements that are copied as raw bits: "uint" for 4 bytes. Throws
/// Error(unsupported) for sizes other than 1, 2, 4 and 8.
std::string_view raw_type(std::size_t element_bytes);

/// Bytes moved over the bandwidth, plus one launch per call: the estimate of engines that copy.
double copy_seconds(const Traits& device, const Problem& problem, int calls = 1);

}  // namespace dlprim
