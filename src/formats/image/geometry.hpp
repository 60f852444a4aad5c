// SPDX-License-Identifier: MIT
// Where the part of a picture lies that a net sees, when the picture is resized and cropped. As in
// torchvision, so that nets see in use what they saw in training, here or there.
#pragma once

#include <dlprim/image.hpp>

#include <algorithm>
#include <cstdint>

namespace dlprim::image {

struct Size {
    std::int64_t width = 0, height = 0;
};

/// The size after resizing so that the shorter side has length `shorter`, or to `exact`, or not at
/// all if both are 0.
inline Size resized_size(Size picture, std::int64_t shorter, Size exact) {
    if (exact.height > 0) return exact;
    if (shorter == 0) return picture;
    const std::int64_t least = std::min(picture.width, picture.height);
    return {std::max<std::int64_t>(1, picture.width * shorter / least),
            std::max<std::int64_t>(1, picture.height * shorter / least)};
}

/// Where the middle begins if `rest` pixels are cut off. Halves go to the even neighbour.
inline std::int64_t middle(std::int64_t rest) {
    return rest / 2 + (rest % 2 & (rest / 2) % 2);
}

/// The box in the picture that a crop at (left, top) of the resized picture shows.
inline ImageBox crop_box(Size picture, Size resized, std::int64_t left, std::int64_t top,
                         Size crop) {
    const double x = static_cast<double>(picture.width) / static_cast<double>(resized.width);
    const double y = static_cast<double>(picture.height) / static_cast<double>(resized.height);
    return {static_cast<double>(left) * x, static_cast<double>(top) * y,
            static_cast<double>(crop.width) * x, static_cast<double>(crop.height) * y};
}

}  // namespace dlprim::image
