// SPDX-License-Identifier: MIT
// What to write in place of an operator type that there is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlprim {

/// "; did you mean 'Pooling2D' with \"mode\": \"avg\"?", or empty. Knows what other frameworks call
/// the operators, names of activations, and misspellings of `types`.
std::string type_hint(std::string_view name, std::span<const std::string> types);

}  // namespace dlprim
