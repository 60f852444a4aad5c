// SPDX-License-Identifier: MIT
// GGUF files: intact and damaged ones, and blocks beside the values of PyPI's `gguf` package.
#include "formats/gguf/file.hpp"
#include "gguf_writer.hpp"
#include "language/model_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <bit>
#include <cmath>
#include <filesystem>

using namespace dlprim;
using testing::check_error;
using testing::Folder;
using testing::GgufWriter;

namespace {

GgufWriter small() {
    GgufWriter writer;
    writer.key("general.architecture", std::string("llama"))
        .key("count", std::uint32_t{7})
        .key("rate", 0.5f)
        .key("big", std::uint64_t{1} << 40)
        .key("on", true)
        .key("bytes", std::vector<std::uint8_t>{1, 255})
        .key("words", std::vector<std::string>{"a", "", "bc"})
        .tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6})
        .tensor("odd", {4}, 27, std::string(32, '\1'));
    return writer;
}

/// Bytes as tests/language/golden_blocks.py makes them, too: the upper bytes of a linear
/// congruential generator.
std::string noise(std::uint32_t seed, std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        bytes += static_cast<char>(seed >> 24);
    }
    return bytes;
}

/// FNV-1a of the floats' bits, in which all NaN are one.
std::uint64_t hash_of(const std::vector<float>& values) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float value : values) {
        const std::uint32_t bits =
            std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value);
        for (int i = 0; i < 32; i += 8) hash = (hash ^ (bits >> i & 255)) * 0x100000001b3u;
    }
    return hash;
}

}  // namespace

TEST_CASE("A GGUF file's keys and tensors are read", "[gguf]") {
    const Folder folder;
    for (const std::uint32_t version : {2u, 3u}) {
        const GgufFile file(folder.write("model.gguf", small().bytes(version)));
        CHECK(file.value<std::string>("general.architecture") == "llama");
        CHECK(file.value<std::int64_t>("count") == 7);
        CHECK(file.value<double>("count") == 7);
        CHECK(file.value<double>("rate") == 0.5);
        CHECK(file.value<std::int64_t>("big") == std::int64_t{1} << 40);
        CHECK(file.value<bool>("on"));
        CHECK(file.value<std::vector<std::int64_t>>("bytes") == std::vector<std::int64_t>{1, 255});
        CHECK(file.value<std::vector<std::string>>("words") ==
              std::vector<std::string>{"a", "", "bc"});
        CHECK(file.value_or<std::int64_t>("nothing", 3) == 3);
        REQUIRE(file.tensors().size() == 2);
        const GgufTensor& w = file.tensors().at("w");
        CHECK(w.shape == Shape{2, 3});
        std::vector<float> values(6);
        file.read(w, values.data());
        CHECK(values == std::vector<float>{1, 2, 3, 4, 5, 6});
        check_error(ErrorKind::format, {"no key 'nothing'"}, [&] { file.value<bool>("nothing"); });
        check_error(ErrorKind::format, {"unexpected type", "'rate'"},
                    [&] { file.value<bool>("rate"); });
        check_error(ErrorKind::unsupported, {"'odd'", "I64", "Q4_1, Q5_0"},
                    [&] { file.read(file.tensors().at("odd"), values.data()); });
    }
}

TEST_CASE("A damaged GGUF file is an error that says what is wrong", "[gguf]") {
    const Folder folder;
    const auto refused = [&](const std::string& bytes, const std::vector<std::string>& words) {
        check_error(ErrorKind::format, words, [&] { GgufFile(folder.write("model.gguf", bytes)); });
    };
    const std::string whole = small().bytes();
    refused("", {"not a GGUF file"});
    refused("\x89PNG\r\n", {"a PNG picture"});
    refused(small().bytes(1), {"version 1"});
    refused(small().bytes(0x03000000), {"order of bytes"});
    refused(GgufWriter().key("a", true).key("a", true).bytes(), {"two keys 'a'"});
    refused(GgufWriter().tensor("t", {1}, {1}).tensor("t", {1}, {1}).bytes(), {"two tensors 't'"});
    refused(GgufWriter().key("general.alignment", std::uint32_t{0}).bytes(), {"alignment is 0"});
    refused(GgufWriter().key("k", ~std::uint64_t{0}).bytes(), {"63 bits"});
    refused(GgufWriter().tensor("t", {1ull << 40, 1ull << 40}, 0, "").bytes(), {"'t'"});
    refused(GgufWriter().tensor("t", {1ull << 59}, 0, "").bytes(), {"'t' takes"});
    refused(GgufWriter().tensor("t", {1, 1, 1, 1, 1}, 0, "").bytes(), {"5 dimensions"});
    refused(GgufWriter().tensor("t", {33}, 2, std::string(64, 'x')).bytes(),
            {"33 elements", "Q4_0", "32"});
    std::string other = whole;
    other[other.find("count") + 5] = 77;  // the type's first byte
    refused(other, {"'count'", "unknown type 77"});
    other = whole;
    other[other.find("words") + 5 + 8 + 7] = 127;  // the array's length
    refused(other, {"'words'", "more than the file can hold"});
}

TEST_CASE("A GGUF file that is cut short anywhere is an error", "[gguf]") {
    const Folder folder;
    const std::string whole = small().bytes();
    const std::size_t data_end = whole.size() - 24;  // the last tensor's own bytes are not checked
    for (std::size_t size = 0; size < data_end - 32; ++size)
        check_error(ErrorKind::format, {},
                    [&] { GgufFile(folder.write("model.gguf", whole.substr(0, size))); });
}

TEST_CASE("A model in several GGUF files is one", "[gguf]") {
    const Folder folder;
    const auto part = [](std::uint32_t number, std::uint32_t count, std::uint32_t all,
                         const std::string& tensor) {
        GgufWriter writer;
        writer.key("general.architecture", std::string("llama"))
            .key("split.no", number)
            .key("split.count", count)
            .key("split.tensors.count", all)
            .tensor(tensor, {2}, {1.0f + static_cast<float>(number), 7});
        return writer.bytes();
    };
    const std::string first = folder.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
    const std::string second = folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
    {
        const auto model = language::open_model(first);
        std::vector<float> values(2);
        model->read("b", values.data());
        CHECK(values == std::vector<float>{2, 7});
        CHECK(model->shape("a") == Shape{2});
        CHECK(!model->shape("c"));
    }
    const auto refused = [&](const std::vector<std::string>& words, const std::string& path) {
        check_error(ErrorKind::format, words, [&] { language::open_model(path); });
    };
    refused({"one of 2 parts", "-00001-of-00002.gguf"}, second);
    folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "a"));
    refused({"'a'", "another part"}, first);
    folder.write("m-00002-of-00002.gguf", part(0, 2, 2, "b"));
    refused({"is not part 2 of 2"}, first);
    folder.write("m-00002-of-00002.gguf", part(1, 2, 3, "b"));
    refused({"has 2 tensors", "are 3"}, folder.write("m-00001-of-00002.gguf", part(0, 2, 3, "a")));
    std::filesystem::remove(second);
    check_error(ErrorKind::not_found, {"m-00002-of-00002.gguf"},
                [&] { language::open_model(first); });
}

TEST_CASE("A GGUF file that changes is not read on", "[gguf]") {
    const Folder folder;
    const std::string path = folder.write("model.gguf", small().bytes());
    const GgufFile file(path);
    folder.write("model.gguf", "short");
    std::vector<float> values(6);
    check_error(ErrorKind::io, {"has changed"},
                [&] { file.read(file.tensors().at("w"), values.data()); });
}

TEST_CASE("Blocks are unpacked to the bits of the gguf package", "[gguf]") {
    // Written by golden_blocks.py. Noise has infinite and NaN scales among 4000 blocks.
    const std::pair<std::string_view, std::uint64_t> expected[] = {
#include "golden_blocks.inc"
    };
    constexpr std::size_t blocks = 4000;
    REQUIRE(std::size(expected) == gguf_types().size());
    for (const GgufType& type : gguf_types()) {
        INFO(type.name);
        const std::string bytes = noise(type.code, blocks * type.bytes);
        std::vector<float> values(blocks * static_cast<std::size_t>(type.elements));
        const Folder folder;
        GgufWriter writer;
        writer.tensor("t", {values.size()}, type.code, bytes);
        const GgufFile file(folder.write("model.gguf", writer.bytes()));
        file.read(file.tensors().at("t"), values.data());
        for (const auto& [name, hash] : expected)
            if (name == type.name) CHECK(hash_of(values) == hash);
    }
}
