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

}  // namespace dlprim
