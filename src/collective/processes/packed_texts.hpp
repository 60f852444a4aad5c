// SPDX-License-Identifier: MIT
// Texts in a message: each as its length, a blank, and its bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

std::string pack_texts(const std::vector<std::string>& parts);

/// Nothing where the text is not what pack_texts() made of so many parts; 0: of any number.
std::vector<std::string> unpack_texts(const std::string& text, std::size_t parts);

}  // namespace dlprim
