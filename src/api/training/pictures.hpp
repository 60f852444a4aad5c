// SPDX-License-Identifier: MIT
// What a net gets of a picture, as a picture again.
#pragma once

#include "train/data/augment.hpp"

#include <dlprim/image.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <vector>

namespace dlprim {

/// Undoes normalising of an input of shape [channels, height, width]. The picture has three
/// channels.
Image picture_of(const std::vector<float>& values, const Shape& shape, const AugmentOptions& how);

/// Mixes the colours of classes into the picture; class 0, mostly the background, has none.
void lay_over(Image& image, const std::vector<std::int32_t>& mask);

/// Keeps one of three equal channels, which makes smaller files.
void make_grey(Image& image);

}  // namespace dlprim
