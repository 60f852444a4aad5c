// SPDX-License-Identifier: MIT
// Pictures of inputs.
#include "api/training/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace dlprim {

Image picture_of(const std::vector<float>& values, const Shape& shape, const AugmentOptions& how) {
    const std::int64_t channels = shape[0], area = shape[1] * shape[2];
    Image image{shape[2], shape[1], 3,
                std::vector<std::uint8_t>(static_cast<std::size_t>(3 * area))};
    const auto of = [&](const std::vector<double>& list, std::int64_t c) {
        return list[list.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    };
    for (std::int64_t i = 0; i < area; ++i) {
        for (std::int64_t c = 0; c < 3; ++c) {
            const std::int64_t from = channels >= 3 ? c : 0;
            const double value =
                values[static_cast<std::size_t>(from * area + i)] * of(how.std, from) +
                of(how.mean, from);
            image.pixels[static_cast<std::size_t>(3 * i + c)] =
                static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
        }
    }
    return image;
}

void lay_over(Image& image, const std::vector<std::int32_t>& mask) {
    constexpr int colours[][3] = {{230, 25, 75},  {60, 180, 75},  {255, 225, 25}, {0, 130, 200},
                                  {245, 130, 48}, {145, 30, 180}, {70, 240, 240}, {240, 50, 230}};
    for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] <= 0) continue;
        const auto& colour = colours[static_cast<std::size_t>(mask[i] - 1) % std::size(colours)];
        for (std::size_t c = 0; c < 3; ++c)
            image.pixels[3 * i + c] =
                static_cast<std::uint8_t>((image.pixels[3 * i + c] + colour[c]) / 2);
    }
}

void make_grey(Image& image) {
    const std::size_t count = image.pixels.size() / 3;
    for (std::size_t i = 0; i < count; ++i) image.pixels[i] = image.pixels[3 * i];
    image.pixels.resize(count);
    image.channels = 1;
}

}  // namespace dlprim
