// SPDX-License-Identifier: MIT
// dimension_of; see lines.hpp.
#include "engine/lines.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

int dimension_of(std::int64_t given, const Shape& x) {
    const std::int64_t rank = std::max(x.rank(), 1);
    require(given >= -rank && given < rank, "dim ", given, " is not a dimension of input ", x);
    return static_cast<int>(given < 0 ? given + rank : given);
}

}  // namespace dlprim
