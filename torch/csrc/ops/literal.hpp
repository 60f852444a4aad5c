// SPDX-License-Identifier: MIT
// A text that is an argument of a template: serve<"max">.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dlprim_torch {

template <std::size_t size>
struct Literal {
    char text[size];
    constexpr Literal(const char (&from)[size]) { std::copy_n(from, size, text); }
};

}  // namespace dlprim_torch
