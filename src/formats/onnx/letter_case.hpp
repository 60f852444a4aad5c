// SPDX-License-Identifier: MIT
// Upper and lower case of UTF-8 text, without a locale: letters of ASCII, Latin-1, Greek and
// Cyrillic. Other characters, and bytes that are no UTF-8, stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace dlprim::onnx {

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

}  // namespace dlprim::onnx
