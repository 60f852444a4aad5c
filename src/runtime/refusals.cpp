// SPDX-License-Identifier: MIT
// What is said of an index that names nothing, and of lengths that do not add up, on the host and
// on devices.
#include "runtime/refusals.hpp"

#include "base/text.hpp"

namespace dlprim {

std::string outside_text(std::int64_t index, std::int64_t place, std::int64_t size, bool from_end) {
    return cat("index ", index, " at position ", place, " is outside of a dimension of ", size,
               " elements, where indices are ", from_end ? -size : 0, " to ", size - 1);
}

std::string lengths_text(std::int64_t length, std::int64_t place, std::int64_t rows) {
    return cat("cumulative lengths begin with 0, do not fall and end with the number of rows, ",
               rows, ", and the one at position ", place, " is ", length);
}

std::string refused_lengths(std::span<const std::int64_t> lengths, std::int64_t first_place,
                            std::int64_t rows) {
    for (std::size_t n = 0; n < lengths.size(); ++n) {
        const std::int64_t least = n == 0 ? 0 : lengths[n - 1];
        const bool fits = lengths[n] >= least && lengths[n] <= rows && (n > 0 || lengths[n] == 0) &&
                          (n + 1 < lengths.size() || lengths[n] == rows);
        if (!fits)
            return lengths_text(lengths[n], first_place + static_cast<std::int64_t>(n), rows);
    }
    return {};
}

}  // namespace dlprim
