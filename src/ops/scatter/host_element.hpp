// SPDX-License-Identifier: MIT
// How scatter.host combines elements.
#pragma once

#include "engine/element.hpp"
#include "ops/scatter/options.hpp"

#include <type_traits>

namespace dlprim::scatter {

/// The type in which elements are combined.
template <typename Value>
using SumOf = std::conditional_t<std::is_floating_point_v<Value>, double, Value>;

/// A NaN is the largest and the smallest. Sums and products of integers wrap around.
template <typename Sum>
Sum combined(Reduction reduction, Sum a, Sum b) {
    using Wide = std::conditional_t<std::is_integral_v<Sum>, std::uint64_t, Sum>;
    switch (reduction) {
        case Reduction::add:
        case Reduction::mean:
            return static_cast<Sum>(static_cast<Wide>(a) + static_cast<Wide>(b));
        case Reduction::mul:
            return static_cast<Sum>(static_cast<Wide>(a) * static_cast<Wide>(b));
        case Reduction::max:
            return a > b || is_nan(a) ? a : b;
        case Reduction::min:
            return a < b || is_nan(a) ? a : b;
        case Reduction::none:
            break;
    }
    return b;
}

/// The mean of `count` elements. Those of integers are rounded down.
template <typename Sum>
Sum divided(Sum sum, std::int64_t count) {
    if constexpr (std::is_floating_point_v<Sum>) {
        return sum / static_cast<Sum>(count);
    } else {
        using Wide = std::conditional_t<sizeof(Sum) == 8, Sum, std::int64_t>;
        const auto by = static_cast<Wide>(count), wide = static_cast<Wide>(sum);
        const bool is_below = std::is_signed_v<Sum> && sum < 0 && wide % by != 0;
        return static_cast<Sum>(wide / by - (is_below ? 1 : 0));
    }
}

/// A sum or maximum of truths is "or", a product or minimum "and".
inline Reduction reduction_of_truths(Reduction reduction) {
    const bool either = reduction == Reduction::add || reduction == Reduction::mean;
    return either ? Reduction::max : reduction == Reduction::mul ? Reduction::min : reduction;
}

}  // namespace dlprim::scatter
