// SPDX-License-Identifier: MIT
// The power series of erf near zero, for kernels that compute erf by vectors:
//
//     erf(x) = 2 / sqrt(pi) * x * (1 - s * p(s)),  s = x * x,  p by Horner's rule from the first.
#pragma once

#include <array>

namespace dlprim::pointwise {

inline constexpr std::array<double, 10> erf_series = {
    -1.0 / 76204800, 1.0 / 6894720, -1.0 / 685440, 1.0 / 75600, -1.0 / 9360,
    1.0 / 1320,      -1.0 / 216,    1.0 / 42,      -0.1,        1.0 / 3};

}  // namespace dlprim::pointwise
