// SPDX-License-Identifier: MIT
// Layouts: names, physical shapes and sizes.
#include "base/layout.hpp"

#include "base/text.hpp"

namespace dlprim {

std::string Layout::str() const {
    switch (kind) {
        case Kind::plain:
            return "nchw";
        case Kind::channels_last:
            return "nhwc";
        case Kind::blocked:
            return cat("nchw", block, "c");
        case Kind::packed:
            return cat("packed:", tag);
        case Kind::strided: {
            std::string list;
            for (const std::int64_t stride : strides) list += cat(list.empty() ? "" : ",", stride);
            return cat("strided[", list, aligned ? "]" : "] unaligned");
        }
    }
    return "unknown";
}

Shape physical_shape(const Shape& logical, const Layout& layout) {
    if (layout.kind != Layout::Kind::channels_last && layout.kind != Layout::Kind::blocked)
        return logical;
    require(logical.rank() == 4, "layout ", layout, " is for shapes of 4 dimensions, not ",
            logical);
    if (layout.kind == Layout::Kind::channels_last)
        return {logical[0], logical[2], logical[3], logical[1]};
    require(layout.block > 0, "layout ", layout, " needs a positive block size");
    const std::int64_t blocks =
        logical[1] / layout.block + (logical[1] % layout.block != 0 ? 1 : 0);
    return {logical[0], blocks, logical[2], logical[3], layout.block};
}

std::uint64_t storage_bytes(const Shape& logical, DType dtype, const Layout& layout) {
    if (layout.kind == Layout::Kind::packed) return layout.bytes;
    return static_cast<std::uint64_t>(physical_shape(logical, layout).numel()) * size_of(dtype);
}

std::vector<std::int64_t> logical_strides(const Shape& logical, const Layout& layout) {
    if (layout.is_strided()) return layout.strides;
    if (layout.is_plain()) return logical.strides();
    require(layout.kind == Layout::Kind::channels_last, "layout ", layout,
            " has no strides by logical dimension");
    const std::vector<std::int64_t> s = physical_shape(logical, layout).strides();
    return {s[0], s[3], s[1], s[2]};
}

}  // namespace dlprim
