// SPDX-License-Identifier: MIT
// Bytes as text of 64 characters (RFC 4648), for what is stored within text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

std::string to_base64(std::string_view bytes);
/// The bytes, or nothing where the text is not such a text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace dlprim
