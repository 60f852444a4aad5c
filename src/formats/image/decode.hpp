// SPDX-License-Identifier: MIT
// Decoding a picture, of which possibly only a part is needed. The input is not trusted: sizes are
// checked before memory is asked for.
#pragma once

#include <dlprim/image.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace dlprim {

/// What a caller needs of a picture: a box, and the size to which it is going to resize that.
struct WantedPart {
    ImageBox box;
    std::int64_t width = 0, height = 0;
};
/// Says what is needed of a picture, when its width and height are known and before it is decoded.
using ChoosePart = std::function<WantedPart(std::int64_t width, std::int64_t height)>;

/// A decoded part: `box` is where the wanted box lies in `image`, which may show more than that and
/// be smaller than the picture by a power of two, but not smaller than what the caller resizes to.
struct ImagePart {
    Image image;
    ImageBox box;
};

/// Decodes a picture; see read_image(). Sizes and boxes are those of the upright picture, as the
/// orientation of its Exif data says. Messages call it `name`. Without `choose` all of it is
/// decoded. Of JPEG only the rows and blocks of the box are, at a half, a quarter or an eighth of
/// their size where that is enough.
ImagePart decode_image(std::string_view bytes, const std::string& name, int channels,
                       const ChoosePart& choose = {});

/// Decodes a picture of class numbers, one per pixel: a PNG with a palette (the number is the
/// index) or grey of at most 8 bits, or a PGM file. Throws Error(format) for colours.
Image decode_mask(std::string_view bytes, const std::string& name);

/// The bytes of a PNG file. Throws Error(unsupported) in a build without libpng.
std::string encode_png(const Image& image);

/// Reads a file for decode_image(): one of at most 1 GiB.
std::string read_image_file(const std::string& path);

}  // namespace dlprim
