// SPDX-License-Identifier: MIT
// Suggestions for an operator type that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlprim {

/// "; did you mean 'Pooling' with \"mode\": \"avg\"?", or empty. Knows the names of operators in
/// other frameworks, names of activations, and misspellings of `types`.
std::string type_hint(std::string_view name, std::span<const std::string> types);

}  // namespace dlprim
