// SPDX-License-Identifier: MIT
// Pictures: parts of JPEG files, resizing, PNG written and read, and files that are cut short.
#include "formats/image/decode.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>
#include <dlprim/image.hpp>
#include <dlprim/preprocessing.hpp>

#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#if DLPRIM_WITH_JPEG
#include <jpeglib.h>
#endif

using namespace dlprim;

namespace {

/// Smooth, so that JPEG keeps it.
Image smooth(std::int64_t width, std::int64_t height) {
    Image image{width, height, 3, {}};
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            for (int c = 0; c < 3; ++c)
                image.pixels.push_back(static_cast<std::uint8_t>(
                    std::lround(128 + 60 * std::sin(0.03 * static_cast<double>(x) + c) +
                                50 * std::cos(0.04 * static_cast<double>(y)))));
    return image;
}

ImageBox all_of(const Image& image) {
    return {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
}

double worst(const std::vector<float>& a, const std::vector<float>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    return most;
}

/// Every beginning of a file is refused with a sentence, or is a picture.
void check_beginnings(const std::string& bytes, const std::string& word) {
    int refused = 0;
    for (std::size_t count = 0; count < bytes.size(); ++count) {
        try {
            decode_image(std::string_view(bytes).substr(0, count), "x", 3);
        } catch (const Error& error) {
            ++refused;
            CHECK(error.kind() == ErrorKind::format);
            if (count > bytes.size() / 2) CHECK_THAT(error.what(), ContainsSubstring(word));
        }
    }
    CHECK(refused + 16 > static_cast<int>(bytes.size()));
}

#if DLPRIM_WITH_JPEG
std::string jpeg_of(const Image& image, bool progressive) {
    jpeg_compress_struct state{};
    jpeg_error_mgr errors{};
    state.err = jpeg_std_error(&errors);
    jpeg_create_compress(&state);
    unsigned char* bytes = nullptr;
    unsigned long count = 0;
    jpeg_mem_dest(&state, &bytes, &count);
    state.image_width = static_cast<JDIMENSION>(image.width);
    state.image_height = static_cast<JDIMENSION>(image.height);
    state.input_components = 3;
    state.in_color_space = JCS_RGB;
    jpeg_set_defaults(&state);
    jpeg_set_quality(&state, 95, TRUE);
    if (progressive) jpeg_simple_progression(&state);
    jpeg_start_compress(&state, TRUE);
    for (std::int64_t y = 0; y < image.height; ++y) {
        auto* row = const_cast<unsigned char*>(image.pixels.data() + y * image.width * 3);
        jpeg_write_scanlines(&state, &row, 1);
    }
    jpeg_finish_compress(&state);
    std::string text(reinterpret_cast<char*>(bytes), count);
    jpeg_destroy_compress(&state);
    std::free(bytes);
    return text;
}
#endif

}  // namespace

TEST_CASE("resizing keeps a constant, and takes means") {
    const Image grey{7, 5, 1, std::vector<std::uint8_t>(35, 77)};
    for (const float value : resized(grey, {1.3, 0.2, 4.5, 3.1}, 13, 2))
        CHECK(value == Approx(77).margin(1e-4));
    const Image row{4, 1, 1, {10, 20, 60, 100}};
    // Weights of a triangle two pixels wide on each side, cut off at the edges.
    const std::vector<float> half = resized(row, all_of(row), 2, 1);
    CHECK(half[0] == Approx((0.75 * 10 + 0.75 * 20 + 0.25 * 60) / 1.75));
    CHECK(half[1] == Approx((0.25 * 20 + 0.75 * 60 + 0.75 * 100) / 1.75));
    CHECK(resized(row, all_of(row), 4, 1) == std::vector<float>{10, 20, 60, 100});
    CHECK(resized(row, {1, 0, 2, 1}, 2, 1) == std::vector<float>{20, 60});
    CHECK_THROWS_AS(resized(row, {3, 0, 2, 1}, 2, 1), Error);
    CHECK_THROWS_AS(resized(row, all_of(row), 0, 1), Error);
}

TEST_CASE("a part of the whole is a part of the picture resized") {
    const Image image = smooth(61, 47);
    const std::vector<float> whole = resized(image, all_of(image), 30, 20);
    const double x = 61 / 30.0, y = 47 / 20.0;
    const std::vector<float> part = resized(image, {5 * x, 3 * y, 10 * x, 8 * y}, 10, 8);
    for (std::size_t row = 0; row < 8; ++row)
        for (std::size_t i = 0; i < 30; ++i)
            CHECK(part[row * 30 + i] == Approx(whole[(row + 3) * 90 + 15 + i]).margin(1e-3));
}

TEST_CASE("preprocessing resizes, crops the middle and normalises") {
    const Image image = smooth(40, 30);
    Preprocessing how;
    how.crop_height = 10;
    how.crop_width = 20;
    how.mean = {0.5};
    how.deviation = {0.25, 0.5, 1};
    const std::vector<float> planes = preprocessed(image, how);
    REQUIRE(planes.size() == 600);
    const double pixel = image.pixels[(10 * 40 + 10) * 3 + 1] / 255.0;
    CHECK(planes[200] == Approx((pixel - 0.5) / 0.5));
    how.crop_width = 41;
    CHECK_THROWS_WITH(preprocessed(image, how), ContainsSubstring("smaller than the crop"));
}

#if DLPRIM_WITH_PNG
TEST_CASE("PNG files are written and read") {
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("dlprim-image-test-" + std::to_string(getpid()) + ".png"))
                                 .string();
    for (const int channels : {1, 3}) {
        Image image = smooth(33, 9);
        if (channels == 1) {
            image.channels = 1;
            image.pixels.resize(33 * 9);
        }
        write_png(path, image);
        const Image back = read_image(path, channels);
        CHECK(back.pixels == image.pixels);
        CHECK(back.width == 33);
    }
    std::filesystem::remove(path);
    CHECK_THROWS_AS(encode_png({3, 3, 3, {}}), Error);
    check_beginnings(encode_png(smooth(20, 10)), "PNG that can be read");
}
#endif

#if DLPRIM_WITH_JPEG
TEST_CASE("a part of a JPEG is what the whole has there") {
    const Image image = smooth(403, 301);
    for (const bool progressive : {false, true}) {
        const std::string bytes = jpeg_of(image, progressive);
        const Image whole = decode_image(bytes, "x", 3).image;
        CHECK(worst(resized(whole, all_of(whole), 403, 301),
                    resized(image, all_of(image), 403, 301)) < 6);
        for (const ImageBox box : {ImageBox{0, 0, 403, 301}, ImageBox{101, 57, 202, 170},
                                   ImageBox{17, 3, 30, 20}, ImageBox{380, 290, 23, 11}}) {
            for (const double shrink : {1.0, 1.7, 2.0, 4.5, 9.0}) {
                const auto width = std::max<std::int64_t>(1, std::lround(box.width / shrink));
                const auto height = std::max<std::int64_t>(1, std::lround(box.height / shrink));
                const ImagePart part =
                    decode_image(bytes, "x", 3, [&](std::int64_t w, std::int64_t h) {
                        CHECK(w == 403);
                        CHECK(h == 301);
                        return WantedPart{box, width, height};
                    });
                CHECK(part.image.width <= 403);
                if (shrink > 8) CHECK(part.image.width <= 60);
                CHECK(worst(resized(part.image, part.box, width, height),
                            resized(whole, box, width, height)) < (shrink < 2 ? 3 : 6));
            }
        }
    }
}

/// Exif data with an orientation, between which and the header `more` entries lie.
std::string exif(unsigned orientation, bool big, unsigned more = 1) {
    const auto number = [&](std::uint32_t value, int bytes) {
        std::string text;
        for (int i = 0; i < bytes; ++i)
            text += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i) & 0xff);
        return text;
    };
    std::string tiff = (big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(more + 1, 2);
    for (unsigned i = 0; i < more; ++i)
        tiff += number(0x010f, 2) + number(2, 2) + number(4, 4) + "abc" + '\0';
    tiff += number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + number(0, 2);
    return "Exif" + std::string(2, '\0') + tiff + number(0, 4);
}

/// The file with a segment for applications behind its first two bytes.
std::string with_segment(const std::string& jpeg, const std::string& segment) {
    const std::size_t length = segment.size() + 2;
    return jpeg.substr(0, 2) + "\xff\xe1" + static_cast<char>(length / 256) +
           static_cast<char>(length % 256) + segment + jpeg.substr(2);
}

/// Where the pixel (x, y) of an upright picture of that size lies in the file, by Exif's table of
/// what row 0 and column 0 of the file are: 6, say, has the right side and the top.
std::pair<std::int64_t, std::int64_t> place_in_file(int orientation, std::int64_t x, std::int64_t y,
                                                    std::int64_t width, std::int64_t height) {
    const std::int64_t right = width - 1 - x, bottom = height - 1 - y;
    switch (orientation) {
        case 2:
            return {right, y};
        case 3:
            return {right, bottom};
        case 4:
            return {x, bottom};
        case 5:
            return {y, x};
        case 6:
            return {y, right};
        case 7:
            return {bottom, right};
        case 8:
            return {bottom, x};
        default:
            return {x, y};
    }
}

/// The picture as a camera that was held in that way stores it.
Image stored(const Image& upright, int orientation) {
    const bool turned = orientation > 4;
    Image image{turned ? upright.height : upright.width, turned ? upright.width : upright.height, 3,
                std::vector<std::uint8_t>(upright.pixels.size())};
    for (std::int64_t y = 0; y < upright.height; ++y)
        for (std::int64_t x = 0; x < upright.width; ++x) {
            const auto [column, row] =
                place_in_file(orientation, x, y, upright.width, upright.height);
            for (std::int64_t c = 0; c < 3; ++c)
                image.pixels[static_cast<std::size_t>((row * image.width + column) * 3 + c)] =
                    upright.pixels[static_cast<std::size_t>((y * upright.width + x) * 3 + c)];
        }
    return image;
}

TEST_CASE("a JPEG becomes upright by each of the 8 orientations") {
    const Image upright = smooth(203, 151);
    for (int orientation = 1; orientation <= 8; ++orientation) {
        CAPTURE(orientation);
        const std::string jpeg = jpeg_of(stored(upright, orientation), orientation % 2 == 0);
        for (const bool big : {false, true}) {
            const std::string bytes =
                with_segment(jpeg, exif(static_cast<unsigned>(orientation), big));
            const Image whole = decode_image(bytes, "x", 3).image;
            REQUIRE(whole.width == 203);
            REQUIRE(whole.height == 151);
            CHECK(worst(resized(whole, all_of(whole), 203, 151),
                        resized(upright, all_of(upright), 203, 151)) < 6);
            // A part, at full size, and at a size for which less is decoded.
            for (const std::int64_t shrink : {1, 4}) {
                const ImageBox box{40, 20, 80, 60};
                const ImagePart part =
                    decode_image(bytes, "x", 3, [&](std::int64_t w, std::int64_t h) {
                        CHECK(w == 203);
                        CHECK(h == 151);
                        return WantedPart{box, 80 / shrink, 60 / shrink};
                    });
                CHECK(part.image.width < 203);
                CHECK(worst(resized(part.image, part.box, 80 / shrink, 60 / shrink),
                            resized(upright, box, 80 / shrink, 60 / shrink)) < 8);
            }
        }
    }
}

TEST_CASE("Exif data that make no sense leave a JPEG as it is") {
    const Image image = smooth(20, 10);
    const std::string jpeg = jpeg_of(image, false), good = exif(6, true);
    CHECK(decode_image(with_segment(jpeg, good), "x", 3).image.width == 10);
    const auto width = [&](const std::string& segment) {
        return decode_image(with_segment(jpeg, segment), "x", 3).image.width;
    };
    for (const unsigned orientation : {0u, 9u, 65535u})
        CHECK(width(exif(orientation, false)) == 20);
    for (std::size_t count = 0; count < good.size() - 6; ++count)
        CHECK(width(good.substr(0, count)) == 20);
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string damaged = good;
        damaged[at] = static_cast<char>(~damaged[at]);
        const std::int64_t found = width(damaged);
        CHECK((found == 10 || found == 20));
    }
    // The orientation must lie within the directory, and the directory within the data.
    CHECK(width("Exif" + std::string(2, '\0') + "II*" + std::string(1, '\0') +
                "\xff\xff\xff\xff") == 20);
}

TEST_CASE("JPEG files that are cut short") {
    check_beginnings(jpeg_of(smooth(40, 30), false), "JPEG that can be read: it is cut short");
    check_beginnings(jpeg_of(smooth(40, 30), true), "JPEG that can be read: it is cut short");
}
#endif
