// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are decoded as a picture, whole, a part of it, or as a mask, give
// pixels or an Error.
#include "formats/image/decode.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace dlprim;

namespace {

void check(const Image& image) {
    if (image.pixels.size() !=
        static_cast<std::size_t>(image.width * image.height * image.channels))
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        check(decode_image(bytes, "fuzz", 3).image);
    } catch (const Error&) {
    }
    try {
        const ImagePart part = decode_image(bytes, "fuzz", 1, [](std::int64_t w, std::int64_t h) {
            const double width = static_cast<double>(w), height = static_cast<double>(h);
            return WantedPart{
                {width / 4, height / 3, width / 2, height / 3}, (w + 7) / 8, (h + 7) / 8};
        });
        check(part.image);
        resized(part.image, part.box, 5, 3);
    } catch (const Error&) {
    }
    try {
        check(decode_mask(bytes, "fuzz"));
    } catch (const Error&) {
    }
    return 0;
}
