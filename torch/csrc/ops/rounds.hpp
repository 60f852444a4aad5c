// SPDX-License-Identifier: MIT
// Loops of programs, which are written out.
#pragma once

#include <string>
#include <string_view>

namespace dlprim_torch {

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
