// SPDX-License-Identifier: MIT
// Orientation: how a camera was held, as Exif data of a JPEG file tell it (Exif 2.32, tag 0x0112).
// The pixels lie in the file as the sensor has them, and are turned when the picture is shown.
#pragma once

#include <dlprim/image.hpp>

#include <cstdint>
#include <string_view>

namespace dlprim::image {

/// A stored picture becomes an upright one by being mirrored along its sides, and after that at its
/// diagonal from the top left, which swaps width and height.
struct Orientation {
    bool mirror_x = false, mirror_y = false, transpose = false;
    bool is_upright() const { return !mirror_x && !mirror_y && !transpose; }
};

/// The orientation that the file's Exif data tell, or upright if there are none or they make no
/// sense. Reads nothing outside of `jpeg`.
Orientation orientation_of(std::string_view jpeg);

/// The upright picture.
Image upright(Image stored, const Orientation& how);
/// A box of the stored picture of that size in the upright one.
ImageBox upright(const ImageBox& stored, const Orientation& how, std::int64_t width,
                 std::int64_t height);
/// A box of the upright picture in the stored one, whose size is given.
ImageBox as_stored(const ImageBox& upright, const Orientation& how, std::int64_t width,
                   std::int64_t height);

}  // namespace dlprim::image
