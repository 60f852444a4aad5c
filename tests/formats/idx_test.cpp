// SPDX-License-Identifier: MIT
// IDX files: plain and compressed, intact and damaged.
#include "formats/idx.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/error.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>

#if DLPRIM_WITH_ZLIB
#include <zlib.h>
#endif

using namespace dlprim;
namespace fs = std::filesystem;

namespace {

struct File {
    fs::path path = fs::temp_directory_path() / ("dlprim-idx-test-" + std::to_string(getpid()));
    ~File() { fs::remove(path); }
    void bytes(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

std::string message(const File& file) {
    return testing::message_of([&] { read_idx(file.path.string()); });
}

const std::string small(
    "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
    "abcdef",
    18);

}  // namespace

TEST_CASE("IDX is read and written", "[idx]") {
    const File file;
    file.bytes(small);
    const IdxArray array = read_idx(file.path.string());
    CHECK(array.shape == Shape{2, 3});
    CHECK(array.dtype == DType::u8);
    REQUIRE(array.data.size() == 6);
    CHECK(std::memcmp(array.data.data(), "abcdef", 6) == 0);

    const float values[2] = {1.5f, -2.0f};
    write_idx(file.path.string(), {2}, DType::f32, values);
    const IdxArray floats = read_idx(file.path.string());
    CHECK(floats.dtype == DType::f32);
    REQUIRE(floats.data.size() == sizeof values);
    CHECK(std::memcmp(floats.data.data(), values, sizeof values) == 0);
}

TEST_CASE("IDX is not read from what is no file", "[idx]") {
    const File file;
    REQUIRE(mkfifo(file.path.c_str(), 0600) == 0);
    alarm(60);  // fail instead of waiting forever
    CHECK_THAT(message(file), ContainsSubstring("a FIFO"));
    alarm(0);
}

TEST_CASE("IDX that is damaged says how", "[idx]") {
    const File file;
    CHECK_THAT(message(file), ContainsSubstring("there is no file"));
    file.bytes("");
    CHECK_THAT(message(file), ContainsSubstring("too short"));
    file.bytes("PNG image");
    CHECK_THAT(message(file), ContainsSubstring("is not an IDX file"));
    file.bytes(std::string("\0\0\x07\x01\0\0\0\1x", 9));
    CHECK_THAT(message(file), ContainsSubstring("unknown type code 7"));
    file.bytes(std::string("\0\0\x08\x09\0\0\0\1x", 9));
    CHECK_THAT(message(file), ContainsSubstring("9 dimensions"));
    file.bytes(small.substr(0, 10));
    CHECK_THAT(message(file), ContainsSubstring("header"));
    file.bytes(small.substr(0, 15));
    CHECK_THAT(message(file), ContainsSubstring("it has 3"));
    file.bytes(small + "g");
    CHECK_THAT(message(file), ContainsSubstring("more bytes"));
    file.bytes(
        std::string("\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\1", 20));
    CHECK_THAT(message(file), ContainsSubstring("is damaged"));
    file.bytes(std::string("\0\0\x08\x01\x7f\xff\xff\xff", 8));
    CHECK_THAT(message(file), ContainsSubstring("more than it can hold"));
}

#if DLPRIM_WITH_ZLIB
TEST_CASE("compressed IDX", "[idx]") {
    const File file;
    std::string content("\0\0\x08\x01\0\1\0\0", 8);
    for (int i = 0; i < 65536; ++i) content.push_back(static_cast<char>((i * 7919) >> 3));
    const gzFile out = gzopen(file.path.c_str(), "wb");
    gzwrite(out, content.data(), static_cast<unsigned>(content.size()));
    gzclose(out);
    const IdxArray array = read_idx(file.path.string());
    CHECK(array.shape == Shape{65536});
    CHECK(std::memcmp(array.data.data(), content.data() + 8, 65536) == 0);

    std::ifstream in(file.path, std::ios::binary);
    const std::string packed{std::istreambuf_iterator<char>(in), {}};
    file.bytes(packed.substr(0, packed.size() / 2));
    CHECK_THAT(message(file), ContainsSubstring("cut short"));
    std::string flipped = packed;
    flipped[packed.size() / 2] = static_cast<char>(flipped[packed.size() / 2] ^ 0x55);
    file.bytes(flipped);
    CHECK_THAT(message(file), ContainsSubstring("damaged"));
    // A header that declares far more than the file could unpack to.
    const gzFile bomb = gzopen(file.path.c_str(), "wb");
    gzwrite(bomb, "\0\0\x08\x01\x7f\xff\xff\xff", 8);
    gzclose(bomb);
    CHECK_THAT(message(file), ContainsSubstring("more than it can hold"));
}
#endif
