// SPDX-License-Identifier: MIT
// printable(): text of drivers and of the environment, fit for one line of a terminal or of JSON.
#pragma once

#include <string>
#include <string_view>

namespace dlprim::doctor {

/// The text in UTF-8 without what a terminal would not show as it is. White space becomes a space.
/// Other control characters, bytes that are no UTF-8, and invisible characters and those that turn
/// the direction of writing become "\\x1b" (bytes) or "\\u202e" (characters).
std::string printable(std::string_view text);

}  // namespace dlprim::doctor
