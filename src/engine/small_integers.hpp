// SPDX-License-Identifier: MIT
// What engines know of products whose factors are floats but hold small integers.
#pragma once

#include <string_view>

namespace dlprim {

/// Attribute of a product of floats both of whose factors hold integers of at most 255 in magnitude
/// (passes/mark_small_integers.cpp), so that engines may multiply integers.
inline constexpr std::string_view small_integers_attr = "@small_integers";

/// ReachedBy::reached_by() of engines that multiply integers.
inline constexpr std::string_view reached_by_marks = "the pass that marks small integers";

}  // namespace dlprim
