// SPDX-License-Identifier: MIT
// Names and files that stand for others: synonyms of options and types, and what bytes seem to be.
#include "base/file_kind.hpp"
#include "base/synonyms.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

using namespace dlprim;

TEST_CASE("names of other frameworks are offered ours") {
    const auto meant = [](std::string_view name, const std::vector<std::string>& known) {
        return did_you_mean(name, known);
    };
    CHECK(meant("lr", {"batch", "learning_rate"}) == "; did you mean 'learning_rate'?");
    CHECK(meant("out_channels", {"channels_in", "channels_out"}) ==
          "; did you mean 'channels_out'?");
    CHECK(meant("filters", {"channels_out"}) == "; did you mean 'channels_out'?");
    CHECK(meant("out_features", {"inputs", "outputs"}) == "; did you mean 'outputs'?");
    CHECK(meant("KernelSize", {"kernel"}) == "; did you mean 'kernel'?");
    CHECK(meant("lr", {"batch", "momentum"}).empty());
    CHECK(synonym_among("", {}).empty());
    CHECK(synonym_among(std::string(100000, 'x'), std::vector<std::string>{"x"}).empty());
    REQUIRE(find_type_synonym("Max_Pool-2d") != nullptr);
    CHECK(find_type_synonym("Max_Pool-2d")->type == "Pooling");
    CHECK(find_type_synonym("Dense")->type == "InnerProduct");
    CHECK(find_type_synonym("Nonsense") == nullptr);
}

TEST_CASE("bytes seem to be what their beginning says") {
    CHECK(kind_of_bytes("\x89PNG\r\n") == "a PNG picture");
    CHECK(kind_of_bytes("\x89HDF\r\n\x1a\n") == "an HDF5 file (weights or data)");
    CHECK(kind_of_bytes(" {\n \"inputs\": []}") == "JSON");
    CHECK(kind_of_bytes("\x08\x07\x12\x04") == "an ONNX model");
    for (const char* nothing : {"", "{", "hello", "net.json", "\x08"})
        CHECK(kind_of_bytes(nothing).empty());
    CHECK_NOTHROW(check_kind("{}", "net.json", "JSON"));
    CHECK_THROWS_AS(check_kind("{}", "w.h5", "an ONNX model"), Error);
}

TEST_CASE("words are paths or devices by their form") {
    for (const char* path : {"net.json", "there/is none.h5", "/"}) CHECK(is_path_like(path));
    for (const char* none : {"", "{\"a.json\"", "gpu", "GeForce RTX 4090"})
        CHECK_FALSE(is_path_like(none));
    for (const char* device : {"cpu", "gpus", "opencl", "0:0", "12:3"})
        CHECK(is_device_like(device));
    for (const char* none : {"", "net.json", "0:", ":1", "0:x", "CPU.h5"})
        CHECK_FALSE(is_device_like(none));
}
