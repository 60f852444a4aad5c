// SPDX-License-Identifier: MIT
// Whether strided views share elements with themselves or with each other.
#pragma once

#include "exec/copy_launches.hpp"

#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlprim {

/// The place's first byte in its buffer's handle(). Memory on the host is counted from address 0,
/// since two buffers may wrap the same.
std::uint64_t first_byte(const StridedPlace& place);

/// Whether two indices of the view are the same element, as after Tensor::expand().
bool overlaps_itself(const Shape& shape, const std::vector<std::int64_t>& strides);
/// Whether the bytes from the first element of one view to its last meet those of the other. Views
/// whose elements alternate count as overlapping.
bool may_overlap(const StridedPlace& a, const StridedPlace& b, const Shape& shape,
                 std::size_t element_bytes);

}  // namespace dlprim
