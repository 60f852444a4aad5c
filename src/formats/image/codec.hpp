// SPDX-License-Identifier: MIT
// What the decoders of the picture formats share. Only .cpp files of this folder include it.
#pragma once

#include "base/text.hpp"
#include "formats/image/decode.hpp"

namespace dlprim::image {

/// Throws Error(format) unless a picture of this size may be decoded: a file of some kilobytes can
/// claim gigabytes of pixels.
void check_size(const std::string& name, std::int64_t width, std::int64_t height);

/// An image without pixels' values, after check_size().
Image make(const std::string& name, std::int64_t width, std::int64_t height, int channels);

/// Grey from colours and colours from grey.
Image with_channels(Image image, int channels);

ImagePart decode_png(std::string_view bytes, const std::string& name);
Image decode_png_mask(std::string_view bytes, const std::string& name);
/// `channels`: what the caller wants in the end.
ImagePart decode_jpeg(std::string_view bytes, const std::string& name, int channels,
                      const ChoosePart& choose);
Image decode_pnm(std::string_view bytes, const std::string& name);

}  // namespace dlprim::image
