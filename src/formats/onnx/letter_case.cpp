// SPDX-License-Identifier: MIT
// Upper and lower case; see letter_case.hpp.
#include "formats/onnx/letter_case.hpp"

#include <cstddef>

namespace dlprim::onnx {

namespace {

/// Letters whose lower case is so many code points behind them.
struct Letters {
    unsigned first, last, to_lower, except;
};
const Letters alphabets[] = {{'A', 'Z', 32, 0},
                             {0xc0, 0xde, 32, 0xd7},     // Latin-1 without the multiplication sign
                             {0x391, 0x3a9, 32, 0x3a2},  // Greek
                             {0x400, 0x40f, 80, 0},      // Cyrillic
                             {0x410, 0x42f, 32, 0}};

unsigned lower(unsigned point) {
    for (const Letters& all : alphabets)
        if (point >= all.first && point <= all.last && point != all.except)
            return point + all.to_lower;
    return point;
}

unsigned upper(unsigned point) {
    for (const Letters& all : alphabets)
        if (point >= all.first + all.to_lower && point <= all.last + all.to_lower &&
            point != all.except + all.to_lower)
            return point - all.to_lower;
    return point;
}

/// All of these letters take one or two bytes, and so does their other case.
std::string mapped(std::string_view text, unsigned (*change)(unsigned)) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
        unsigned point = byte;
        if (byte >= 0xc3 && byte <= 0xdf && (next & 0xc0) == 0x80) {
            point = (byte & 0x1fu) << 6 | (next & 0x3fu);
            ++i;
        } else if (byte >= 0x80) {
            result += text[i];
            continue;
        }
        point = change(point);
        if (point < 0x80) {
            result += static_cast<char>(point);
        } else {
            result += static_cast<char>(0xc0 | point >> 6);
            result += static_cast<char>(0x80 | (point & 0x3f));
        }
    }
    return result;
}

}  // namespace

std::string to_lower(std::string_view text) {
    return mapped(text, lower);
}

std::string to_upper(std::string_view text) {
    return mapped(text, upper);
}

}  // namespace dlprim::onnx
