// SPDX-License-Identifier: MIT
// Pictures: read from PNG, JPEG, PPM and PGM files, resized, and written as PNG.
//
// An Image is a plain value in host memory, which belongs to the caller. Any thread may call these
// functions, several threads at a time. They return when their work is done.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

/// Pixels in rows from the top, each of `channels` bytes: grey, or red, green and blue.
struct Image {
    std::int64_t width = 0, height = 0;
    int channels = 3;                  ///< 1 or 3
    std::vector<std::uint8_t> pixels;  ///< height * width * channels
};

/// A rectangle in pixels. Its edges may lie within pixels.
struct ImageBox {
    double left = 0, top = 0, width = 0, height = 0;
};

/// Reads a file in PNG, JPEG (a CMYK one, too), or PPM or PGM with binary pixels. The format
/// follows from the file's contents, not from its name. A JPEG becomes upright by the orientation
/// of its Exif data. `channels` is 1 or 3: colours become
/// grey by the weights of ITU-R 601, and grey becomes three equal colours. Pixels of 16 bits are
/// rounded to 8, and transparent pixels are laid over black. Throws Error: not_found; io; format
/// (no such picture, cut short, damaged, more than 2^15 pixels wide or high, more than 2^26 in
/// all); unsupported (PNG or JPEG in a build without libpng or libjpeg).
Image read_image(const std::string& path, int channels = 3);

/// Writes a PNG file whole or not at all. Throws Error(io), and Error(unsupported) in a build
/// without libpng.
void write_png(const std::string& path, const Image& image);

/// The part of the image within `box` at another size: floats from 0 to 255, laid out as pixels of
/// an Image. Each pixel is the mean, weighted by a triangle, of the pixels that it covers
/// (bilinear interpolation where the image grows), as Pillow and torchvision resize with antialias.
/// Pixels outside of the box count where the triangle reaches them. Throws Error(invalid_argument)
/// where the box is not within the image or a size is not positive.
std::vector<float> resized(const Image& image, const ImageBox& box, std::int64_t width,
                           std::int64_t height);

}  // namespace dlprim
