// SPDX-License-Identifier: MIT
// Lists of names in messages.
#pragma once

#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// The first names, and how many more there are.
inline std::string listed(const std::vector<std::string>& names, std::size_t most) {
    const std::vector<std::string> shown(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
    return cat(join(shown, ", "),
               names.size() > most ? cat(" and ", names.size() - most, " more") : "");
}

}  // namespace dlprim
