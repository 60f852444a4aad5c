// SPDX-License-Identifier: MIT
// Which decoder a picture needs, and what is the same for all: limits and channels.
#include "formats/image/decode.hpp"

#include "base/env.hpp"
#include "base/file_kind.hpp"
#include "formats/image/codec.hpp"
#include "formats/image/orientation.hpp"

namespace dlprim {

namespace {

constexpr std::int64_t largest_side = 1 << 15;
constexpr std::int64_t most_pixels = std::int64_t{1} << 26;

enum class PictureFormat { png, jpeg, pnm };

PictureFormat format_of(std::string_view bytes, const std::string& name) {
    if (bytes.starts_with("P5") || bytes.starts_with("P6")) return PictureFormat::pnm;
    const bool png = bytes.starts_with("\x89PNG");
    const std::string_view kind = kind_of_bytes(bytes);
    if (!png && !bytes.starts_with("\xff\xd8\xff"))
        fail(ErrorKind::format, "'", name, "' is ", bytes.empty() ? "empty, " : "",
             "no image in PPM, PGM, PNG or JPEG",
             kind.empty() ? "" : cat(", and seems to be ", kind));
#if !DLPRIM_WITH_PNG
    if (png)
        fail(ErrorKind::unsupported, "'", name,
             "' is PNG, which this build does not read: install libpng-dev and build dlprim again, "
             "or convert it to PPM");
#endif
#if !DLPRIM_WITH_JPEG
    if (!png)
        fail(ErrorKind::unsupported, "'", name,
             "' is JPEG, which this build does not read: install libjpeg-dev and build dlprim "
             "again, or convert it to PPM");
#endif
    return png ? PictureFormat::png : PictureFormat::jpeg;
}

}  // namespace

namespace image {

void check_size(const std::string& name, std::int64_t width, std::int64_t height) {
    if (width < 1 || height < 1 || width > largest_side || height > largest_side)
        fail(ErrorKind::format, "'", name, "' is an image of ", width, " x ", height,
             " pixels; each side must be from 1 to ", largest_side);
    if (width * height > most_pixels)
        fail(ErrorKind::format, "'", name, "' is an image of ", width, " x ", height,
             " pixels, more than the limit of ", most_pixels, " pixels in all; make it smaller");
}

Image make(const std::string& name, std::int64_t width, std::int64_t height, int channels) {
    check_size(name, width, height);
    return {width, height, channels,
            std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * channels))};
}

Image with_channels(Image image, int channels) {
    if (image.channels == channels) return image;
    const std::size_t count = image.pixels.size() / static_cast<std::size_t>(image.channels);
    std::vector<std::uint8_t> pixels(count * static_cast<std::size_t>(channels));
    for (std::size_t i = 0; i < count; ++i) {
        if (channels == 3) {
            for (std::size_t c = 0; c < 3; ++c) pixels[3 * i + c] = image.pixels[i];
            continue;
        }
        const std::uint8_t* const from = image.pixels.data() + 3 * i;
        // ITU-R 601 in fixed point, as Pillow rounds it.
        pixels[i] = static_cast<std::uint8_t>(
            (from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    }
    return {image.width, image.height, channels, std::move(pixels)};
}

#if DLPRIM_WITH_JPEG
/// The part of a picture that is upright, where the camera may have been held in another way.
static ImagePart decode_upright_jpeg(std::string_view bytes, const std::string& name, int channels,
                                     const ChoosePart& choose) {
    const Orientation how = orientation_of(bytes);
    if (how.is_upright()) return decode_jpeg(bytes, name, channels, choose);
    ChoosePart chosen;
    if (choose)
        chosen = [&](std::int64_t width, std::int64_t height) {
            WantedPart wanted = how.transpose ? choose(height, width) : choose(width, height);
            wanted.box = as_stored(wanted.box, how, width, height);
            if (how.transpose) std::swap(wanted.width, wanted.height);
            return wanted;
        };
    ImagePart part = decode_jpeg(bytes, name, channels, chosen);
    part.box = upright(part.box, how, part.image.width, part.image.height);
    part.image = upright(std::move(part.image), how);
    return part;
}
#endif

}  // namespace image

ImagePart decode_image(std::string_view bytes, const std::string& name, int channels,
                       const ChoosePart& choose) {
    require(channels == 1 || channels == 3, "an image has 1 or 3 channels, not ", channels);
    ImagePart part;
    switch (format_of(bytes, name)) {
        case PictureFormat::jpeg:
#if DLPRIM_WITH_JPEG
            part = image::decode_upright_jpeg(bytes, name, channels, choose);
            part.image = image::with_channels(std::move(part.image), channels);
#endif
            return part;
        case PictureFormat::png:
#if DLPRIM_WITH_PNG
            part = image::decode_png(bytes, name);
#endif
            break;
        case PictureFormat::pnm:
            part.image = image::decode_pnm(bytes, name);
            break;
    }
    part.image = image::with_channels(std::move(part.image), channels);
    part.box = {0, 0, static_cast<double>(part.image.width),
                static_cast<double>(part.image.height)};
    if (choose) part.box = choose(part.image.width, part.image.height).box;
    return part;
}

Image decode_mask(std::string_view bytes, const std::string& name) {
    const PictureFormat format = format_of(bytes, name);
    if (format == PictureFormat::jpeg)
        fail(ErrorKind::format, "'", name,
             "' is JPEG, which changes pixels; a mask of class numbers is PNG or PGM");
#if DLPRIM_WITH_PNG
    if (format == PictureFormat::png) return image::decode_png_mask(bytes, name);
#endif
    Image mask = image::decode_pnm(bytes, name);
    if (mask.channels != 1)
        fail(ErrorKind::format, "'", name,
             "' has colours; a mask has class numbers: grey, or a PNG with a palette");
    return mask;
}

std::string read_image_file(const std::string& path) {
    return read_file(path, std::uint64_t{1} << 30);
}

Image read_image(const std::string& path, int channels) {
    return decode_image(read_image_file(path), path, channels).image;
}

void write_png(const std::string& path, const Image& image) {
    write_file_atomically(path, encode_png(image));
}

}  // namespace dlprim
