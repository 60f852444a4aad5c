// SPDX-License-Identifier: MIT
// Options of a kernel's build.
#pragma once

#include "base/text.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace dlprim {

/// " -DO=2".
inline std::string define(std::string_view name, std::int64_t value) {
    return cat(" -D", name, "=", value);
}

}  // namespace dlprim
