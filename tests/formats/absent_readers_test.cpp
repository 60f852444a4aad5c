// SPDX-License-Identifier: MIT
// What a build without libpng, libjpeg or zlib says of files that need them: the package to
// install, and what helps without it. This program has its own copies of the readers, compiled
// without.
#include "formats/idx.hpp"
#include "formats/image/decode.hpp"
#include "formats/zip.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/error.hpp>
#include <dlprim/image.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#if DLPRIM_WITH_PNG || DLPRIM_WITH_JPEG || DLPRIM_WITH_ZLIB
#error "this program is for a build without these libraries"
#endif

using namespace dlprim;
namespace fs = std::filesystem;

namespace {

struct File {
    fs::path path = fs::temp_directory_path() / ("dlprim-absent-test-" + std::to_string(getpid()));
    explicit File(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
    ~File() { fs::remove(path); }
};

template <typename Call>
std::string refusal(const Call& call) {
    return testing::message_of(ErrorKind::unsupported, [&] { call(); });
}

}  // namespace

TEST_CASE("a build without libpng names it where it meets a PNG") {
    const std::string png("\x89PNG\r\n\x1a\n");
    const std::string says = "install libpng-dev and build dlprim again";
    CHECK_THAT(refusal([&] { (void)decode_image(png, "cat.png", 3); }),
               ContainsSubstring("'cat.png' is PNG") && ContainsSubstring(says));
    CHECK_THAT(refusal([&] { (void)encode_png(Image{1, 1, 1, {0}}); }), ContainsSubstring(says));
    const File file(png);
    CHECK_THAT(refusal([&] { (void)read_image(file.path.string()); }), ContainsSubstring(says));
}

TEST_CASE("a build without libjpeg names it where it meets a JPEG") {
    CHECK_THAT(
        refusal([] { (void)decode_image("\xff\xd8\xff\xe0", "cat.jpg", 3); }),
        ContainsSubstring("'cat.jpg' is JPEG") &&
            ContainsSubstring("install libjpeg-dev and build dlprim again, or convert it to PPM"));
}

TEST_CASE("a build without libpng and libjpeg reads PPM") {
    const Image image = decode_image("P6\n2 1\n255\nabcdef", "two.ppm", 3).image;
    CHECK(image.width == 2);
    CHECK(image.pixels.size() == 6);
}

TEST_CASE("a build without zlib names it where it meets compressed data") {
    const std::string says = "install zlib1g-dev and build dlprim again";
    const File file("\x1f\x8b\b");
    CHECK_THAT(refusal([&] { (void)read_idx(file.path.string()); }),
               ContainsSubstring(says) && ContainsSubstring("gunzip"));
    const InputFile input(file.path.string());
    ZipMember member;
    member.name = "x.npy";
    member.deflated = true;
    CHECK_THAT(refusal([&] { (void)read_zip_member(input, member); }),
               ContainsSubstring("member 'x.npy'") && ContainsSubstring(says));
}
