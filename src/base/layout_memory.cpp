// SPDX-License-Identifier: MIT
// same_memory: when two layouts of a shape are the same bytes.
#include "base/layout.hpp"

namespace dlprim {

namespace {

/// Whether the layout puts the elements of this shape where the plain layout does.
bool like_plain(const Shape& shape, const Layout& layout) {
    if (layout.is_plain()) return true;
    if (layout.is_strided()) {
        const std::vector<std::int64_t> plain = shape.strides();
        bool alike = layout.aligned;
        for (int d = 0; d < shape.rank(); ++d) {
            const auto i = static_cast<std::size_t>(d);
            alike = alike && (shape[d] == 1 || layout.strides[i] == plain[i]);
        }
        return alike;
    }
    if (layout.kind == Layout::Kind::packed || shape.rank() != 4) return false;
    const bool one_pixel = shape[2] * shape[3] == 1;
    if (layout.kind == Layout::Kind::channels_last) return one_pixel || shape[1] == 1;
    return one_pixel && shape[1] % layout.block == 0;
}

}  // namespace

bool same_memory(const Shape& logical, const Layout& a, const Layout& b) {
    return a == b || (like_plain(logical, a) && like_plain(logical, b));
}

}  // namespace dlprim
