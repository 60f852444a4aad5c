// SPDX-License-Identifier: MIT
// Images for the commands that classify them: read from files, resized and cropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::tools {

/// Pixels in rows from the top, each red, green and blue from 0 to 255.
struct Image {
    std::int64_t width = 0, height = 0;
    std::vector<float> pixels;
};

/// Reads PPM and PGM (binary, 8 bits), and PNG and JPEG where the build found libpng and libjpeg.
/// Grey becomes three equal colours, transparency is laid over black. Throws Error: not_found, io,
/// format, unsupported.
Image read_image(const std::string& path);

/// Another size. Each pixel is the mean, weighted by a triangle, of the pixels that it covers, as
/// Pillow and torchvision resize with antialias.
Image resized(const Image& image, std::int64_t width, std::int64_t height);
/// The square of this size from the middle; the image has at least that size.
Image cropped(const Image& image, std::int64_t size);

}  // namespace dlprim::tools
