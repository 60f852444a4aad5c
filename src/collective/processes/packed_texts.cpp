// SPDX-License-Identifier: MIT
// Texts in a message.
#include "collective/processes/packed_texts.hpp"

#include "base/text.hpp"

namespace dlprim {

std::string pack_texts(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += cat(part.size(), " ", part);
    return all;
}

std::vector<std::string> unpack_texts(const std::string& text, std::size_t parts) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t blank = text.find(' ', at);
        if (blank == std::string::npos) return {};
        const auto length = leading_number<std::size_t>(
            std::string_view(text).substr(at, blank - at), text.size() + 1);
        if (length > text.size() - blank - 1) return {};
        all.push_back(text.substr(blank + 1, length));
        at = blank + 1 + length;
    }
    if (parts != 0 && all.size() != parts) return {};
    return all;
}

}  // namespace dlprim
