// SPDX-License-Identifier: MIT
// Plain loops that oracles share: iterating over the positions of a shape, and reading with numpy's
// broadcast.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <vector>

namespace dlprim {

/// Calls visit(index, linear) for every position of `shape` in row-major order.
template <typename Visit>
void for_each_position(const Shape& shape, Visit&& visit) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
    for (std::int64_t linear = 0; linear < shape.numel(); ++linear) {
        visit(index, static_cast<std::size_t>(linear));
        for (int d = shape.rank() - 1; d >= 0; --d) {
            auto& position = index[static_cast<std::size_t>(d)];
            if (++position < shape[d]) break;
            position = 0;
        }
    }
}

/// The offset, in an array of shape `part`, of the element that broadcasts to `index`.
inline std::size_t broadcast_offset(const Shape& part, const std::vector<std::int64_t>& index) {
    const std::size_t extra = index.size() - static_cast<std::size_t>(part.rank());
    std::int64_t offset = 0;
    for (int d = 0; d < part.rank(); ++d)
        offset = offset * part[d] + (part[d] == 1 ? 0 : index[static_cast<std::size_t>(d) + extra]);
    return static_cast<std::size_t>(offset);
}

/// Makes arrays[i] an array of zeros of this shape and returns it. If `arrays` has to grow,
/// references to its other elements become invalid; callers of oracles avoid that.
inline HostArray& make_array(std::vector<HostArray>& arrays, std::size_t i, const Shape& shape,
                             DType dtype = DType::f32) {
    if (arrays.size() <= i) arrays.resize(i + 1);
    arrays[i] = {shape, std::vector<double>(static_cast<std::size_t>(shape.numel()), 0.0), dtype};
    return arrays[i];
}

/// A tensor seen as [outer, size, inner] around one dimension.
struct AxisView {
    std::size_t outer, size, inner;
    AxisView(const Shape& shape, int axis)
        : outer(static_cast<std::size_t>(shape.product(0, axis))),
          size(static_cast<std::size_t>(shape[axis])),
          inner(static_cast<std::size_t>(shape.product(axis + 1, shape.rank()))) {}
    std::size_t at(std::size_t o, std::size_t k, std::size_t i) const {
        return (o * size + k) * inner + i;
    }
};

}  // namespace dlprim
