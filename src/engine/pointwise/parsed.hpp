// SPDX-License-Identifier: MIT
// Programs by their texts, without a copy. Those of one text share expressions, which do not
// change.
#pragma once

#include "engine/pointwise/program.hpp"

#include <memory>
#include <string_view>

namespace dlprim::pointwise {

/// The program that parse() returns.
std::shared_ptr<const Program> parsed(std::string_view code);
/// The same program with all expressions simplified.
std::shared_ptr<const Program> parsed_simple(std::string_view code);

}  // namespace dlprim::pointwise
