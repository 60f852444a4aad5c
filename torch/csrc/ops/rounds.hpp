// SPDX-License-Identifier: MIT
// Texts of programs: parts that are joined, and loops, which are written out.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace dlprim_torch {

inline std::string joined(std::initializer_list<std::string_view> texts) {
    std::string all;
    for (const std::string_view text : texts) all += text;
    return all;
}

/// `text` once for each of `first` to `last`, where # stands for that number, $ for the number
/// before it, and @ and % for two ids of random numbers that no other number has.
inline std::string rounds(std::string_view text, int first, int last) {
    std::string all;
    for (int i = first; i <= last; ++i)
        for (const char c : text) switch (c) {
                case '#':
                    all += std::to_string(i);
                    break;
                case '$':
                    all += std::to_string(i - 1);
                    break;
                case '@':
                    all += std::to_string(2 * i);
                    break;
                case '%':
                    all += std::to_string(2 * i + 1);
                    break;
                default:
                    all += c;
            }
    return all;
}

}  // namespace dlprim_torch
