// SPDX-License-Identifier: MIT
// Finds copies that are transpositions.
#include "engine/strided_copy_parts.hpp"

#include <optional>

namespace dlprim {

std::int64_t product_of(const Ints& sizes, std::size_t count) {
    std::int64_t result = 1;
    for (std::size_t i = 0; i < count; ++i) result *= sizes[i];
    return result;
}

std::optional<Transposition> transposition(const StridedCopy& copy, bool fold) {
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    constexpr std::int64_t shortest = 8, tile = 32;
    const std::size_t n = copy.sizes.size();
    if (n < 2 || copy.y_strides[n - 1] != 1 || copy.x_strides[n - 1] == 1) return std::nullopt;
    // x_inner and x_outer make the line in x, y_inner and y_outer the line in y.
    const std::size_t y_inner = n - 1;
    std::size_t x_inner = none, x_outer = none, y_outer = none;
    for (std::size_t d = 0; d < y_inner; ++d)
        if (copy.x_strides[d] == 1) x_inner = d;
    if (x_inner == none) return std::nullopt;
    for (std::size_t d = 0; fold && d < y_inner; ++d) {
        if (d == x_inner) continue;
        if (copy.sizes[x_inner] < tile && copy.x_strides[d] == copy.sizes[x_inner])
            x_outer = d;
        else if (copy.sizes[y_inner] < tile && copy.y_strides[d] == copy.sizes[y_inner])
            y_outer = d;
    }
    Transposition result;
    result.copy = copy;
    Ints &sizes = result.copy.sizes, &xs = result.copy.x_strides, &ys = result.copy.y_strides;
    sizes.clear(), xs.clear(), ys.clear();
    const auto add = [&](std::size_t d, std::size_t outer) {
        sizes.push_back(copy.sizes[d] * (outer == none ? 1 : copy.sizes[outer]));
        xs.push_back(copy.x_strides[d]);
        ys.push_back(copy.y_strides[d]);
    };
    for (std::size_t d = 0; d < y_inner; ++d)
        if (d != x_inner && d != x_outer && d != y_outer) add(d, none);
    add(x_inner, x_outer);
    add(y_inner, y_outer);
    const std::size_t last = sizes.size() - 1;
    if (sizes[last - 1] < shortest || sizes[last] < shortest) return std::nullopt;
    result.x_line = {copy.sizes[x_inner], x_outer == none ? 0 : copy.y_strides[x_outer]};
    result.y_line = {copy.sizes[y_inner], y_outer == none ? 0 : copy.x_strides[y_outer]};
    return result;
}

}  // namespace dlprim
