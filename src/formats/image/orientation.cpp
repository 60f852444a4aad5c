// SPDX-License-Identifier: MIT
// Orientation: found in Exif data, and pictures and boxes turned by it.
#include "formats/image/orientation.hpp"

#include <cstddef>
#include <utility>

namespace dlprim::image {

namespace {

/// A file in TIFF's format, whose integers are of either byte order. What lies outside of it is 0.
class Tiff {
  public:
    explicit Tiff(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}
    std::uint32_t number(std::size_t at, std::size_t count) const {
        if (at > bytes_.size() || count > bytes_.size() - at) return 0;
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < count; ++i)
            value =
                value << 8 | static_cast<unsigned char>(bytes_[at + (big_ ? i : count - 1 - i)]);
        return value;
    }

  private:
    std::string_view bytes_;
    bool big_;
};

/// The number from 1 to 8, or 0.
std::uint32_t orientation_number(std::string_view tiff) {
    constexpr std::uint32_t forty_two = 42, tag = 0x0112, type_short = 3;
    constexpr std::size_t entry_bytes = 12;
    if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 0;
    const Tiff file(tiff);
    if (file.number(2, 2) != forty_two) return 0;
    const std::size_t directory = file.number(4, 4);
    const std::uint32_t entries = file.number(directory, 2);
    for (std::size_t i = 0; i < entries; ++i) {
        const std::size_t at = directory + 2 + i * entry_bytes;
        if (at > tiff.size()) return 0;
        if (file.number(at, 2) == tag && file.number(at + 2, 2) == type_short &&
            file.number(at + 4, 4) == 1)
            return file.number(at + 8, 2);
    }
    return 0;
}

/// The Exif data, from their TIFF header on, or empty.
std::string_view exif_of(std::string_view jpeg) {
    constexpr std::string_view name("Exif\0\0", 6);
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(jpeg[at]); };
    for (std::size_t at = 2; at + 4 <= jpeg.size();) {
        if (byte(at) != 0xff) return {};
        const unsigned char marker = byte(at + 1);
        if (marker == 0xff) {  // before a marker there may be more of them
            ++at;
            continue;
        }
        if (marker == 0xd9 || marker == 0xda) return {};  // the end, or the pixels
        const std::size_t length = byte(at + 2) * 256u + byte(at + 3);
        if (length < 2 || length > jpeg.size() - at - 2) return {};
        const std::string_view segment = jpeg.substr(at + 4, length - 2);
        if (marker == 0xe1 && segment.starts_with(name)) return segment.substr(name.size());
        at += 2 + length;
    }
    return {};
}

}  // namespace

Orientation orientation_of(std::string_view jpeg) {
    const std::uint32_t number = orientation_number(exif_of(jpeg));
    if (number < 1 || number > 8) return {};
    const bool mirror_x = number == 2 || number == 3 || number == 7 || number == 8;
    const bool mirror_y = number == 3 || number == 4 || number == 6 || number == 7;
    return {mirror_x, mirror_y, number >= 5};
}

Image upright(Image stored, const Orientation& how) {
    if (how.is_upright()) return stored;
    const std::int64_t width = how.transpose ? stored.height : stored.width;
    const std::int64_t height = how.transpose ? stored.width : stored.height;
    const auto channels = static_cast<std::size_t>(stored.channels);
    Image result{width, height, stored.channels, {}};
    result.pixels.resize(stored.pixels.size());
    std::uint8_t* to = result.pixels.data();
    for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
            const std::int64_t across = how.transpose ? y : x, down = how.transpose ? x : y;
            const std::int64_t column = how.mirror_x ? stored.width - 1 - across : across;
            const std::int64_t row = how.mirror_y ? stored.height - 1 - down : down;
            const std::uint8_t* const from =
                stored.pixels.data() +
                static_cast<std::size_t>(row * stored.width + column) * channels;
            for (std::size_t c = 0; c < channels; ++c) *to++ = from[c];
        }
    }
    return result;
}

ImageBox upright(const ImageBox& stored, const Orientation& how, std::int64_t width,
                 std::int64_t height) {
    ImageBox box = stored;
    if (how.mirror_x) box.left = static_cast<double>(width) - box.left - box.width;
    if (how.mirror_y) box.top = static_cast<double>(height) - box.top - box.height;
    if (how.transpose) return {box.top, box.left, box.height, box.width};
    return box;
}

ImageBox as_stored(const ImageBox& upright, const Orientation& how, std::int64_t width,
                   std::int64_t height) {
    ImageBox box = upright;
    if (how.transpose) box = {box.top, box.left, box.height, box.width};
    if (how.mirror_x) box.left = static_cast<double>(width) - box.left - box.width;
    if (how.mirror_y) box.top = static_cast<double>(height) - box.top - box.height;
    return box;
}

}  // namespace dlprim::image
