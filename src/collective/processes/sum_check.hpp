// SPDX-License-Identifier: MIT
// SumCheck: whether sums that a transport has added up are those of what all processes gave it, as
// far as that can be known of sums in any order.
//
// Method: checksums of linear algebra ("algorithm-based fault tolerance"). Each process sums its
// floats up in double, in blocks and with weights that differ from element to element. The same
// sums of the result must be those of all processes together, but for the rounding of the
// additions, which has a bound. So a correct result is never refused. A change is noticed where it
// is larger than the rounding of a block: for two processes, about a thousandth of its average
// element. What differs between processes is found by a digest of the result, whatever its size.
//
// Threads: functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

namespace dlprim {

class SumCheck {
  public:
    /// Of a process's floats: two numbers for each block, the sum and the sum of magnitudes.
    static std::vector<double> of(const float* values, std::uint64_t count);

    /// `all` are those of the processes, one after the other, and `sums` is the result. Whether
    /// that may be their sum. Blocks with values that are not finite, or whose sum is not, are
    /// passed over.
    static bool agrees(const float* sums, std::uint64_t count, const std::vector<double>& all);

    /// A digest of the result. All NaNs count as the same, since processors choose which of two
    /// they pass on.
    static std::uint64_t digest(const float* sums, std::uint64_t count);
};

}  // namespace dlprim
