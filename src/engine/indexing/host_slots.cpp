// SPDX-License-Identifier: MIT
// HostSlots: reading indices, and what is said of one that names nothing.
#include "engine/indexing/host_slots.hpp"

#include "base/text.hpp"
#include "runtime/refusals.hpp"

#include <cstring>

namespace dlprim {

std::int64_t HostSlots::index_at(std::int64_t place) const {
    const auto at = static_cast<std::size_t>(place);
    if (is_wide_) {
        std::int64_t index;
        std::memcpy(&index, indices_ + at * sizeof(index), sizeof(index));
        return index;
    }
    std::int32_t index;
    std::memcpy(&index, indices_ + at * sizeof(index), sizeof(index));
    return index;
}

void HostSlots::refuse(std::int64_t place, std::int64_t size) const {
    fail(ErrorKind::invalid_argument,
         outside_text(index_at(place), place, size, indexing_.from_end));
}

}  // namespace dlprim
