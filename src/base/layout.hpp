// SPDX-License-Identifier: MIT
// Layout: how a value's logical shape lies in memory.
//
//   plain          row-major in logical order (NCHW for images)
//   channels_last  NHWC; rank 4 only
//   blocked        NCHW<b>c: [N, ceil(C/b), H, W, b]; rank 4 only. Lanes beyond C are zero after
//                  every write.
//   strided        any strides: a view that the caller of an eager call gives, or a value that lies
//                  in another one's memory (plan/strided_views.hpp)
//   packed         bytes only its engine understands (weights made ready for one kernel), told
//                  apart by a tag and a size
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

struct Layout {
    enum class Kind : std::uint8_t { plain, channels_last, blocked, packed, strided };
    Kind kind = Kind::plain;
    int block = 0;            ///< channels per block, for blocked
    std::string tag;          ///< for packed: engine and variant, e.g. "conv2d.blocked:OIhw16i32o"
    std::uint64_t bytes = 0;  ///< for packed: size of the packed form
    std::vector<std::int64_t> strides = {};  ///< for strided: by logical dimension, in elements
    /// For strided: whether the first element has the alignment that kernels expect of operands.
    bool aligned = true;

    static Layout plain() { return {}; }
    static Layout channels_last() { return {Kind::channels_last, 0, {}, 0}; }
    static Layout blocked(int block) { return {Kind::blocked, block, {}, 0}; }
    static Layout packed(std::string tag, std::uint64_t bytes) {
        return {Kind::packed, 0, std::move(tag), bytes};
    }
    static Layout strided(std::vector<std::int64_t> strides, bool aligned) {
        return {Kind::strided, 0, {}, 0, std::move(strides), aligned};
    }

    bool is_plain() const { return kind == Kind::plain; }
    bool is_strided() const { return kind == Kind::strided; }
    bool operator==(const Layout&) const = default;
    /// "nchw", "nhwc", "nchw16c", "strided[1,3]", "packed:<tag>".
    std::string str() const;
};

/// The shape of the array in memory: NHWC sizes for channels_last, [N, ceil(C/b), H, W, b] for
/// blocked, the logical shape otherwise (also for strided). Throws Error(invalid_argument) on a
/// rank the layout lacks.
Shape physical_shape(const Shape& logical, const Layout& layout);
/// Bytes that a value of this shape, type and layout takes (packed: its own size; strided: that of
/// its elements, without gaps and repetitions).
std::uint64_t storage_bytes(const Shape& logical, DType dtype, const Layout& layout);

/// The strides of a plain, channels_last or strided layout by logical dimension, in elements.
std::vector<std::int64_t> logical_strides(const Shape& logical, const Layout& layout);

/// Whether the two layouts put the elements of this shape at the same places. Equal layouts always
/// do. So do blocked or channels_last and plain for 1x1 images whose channels fill whole blocks.
bool same_memory(const Shape& logical, const Layout& a, const Layout& b);

}  // namespace dlprim
