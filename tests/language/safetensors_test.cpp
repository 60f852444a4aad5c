// SPDX-License-Identifier: MIT
// Safetensors files: intact and damaged ones, and folders of models whose parts do not fit.
#include "formats/safetensors/file.hpp"
#include "language/model_file.hpp"
#include "safetensors_writer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <filesystem>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   int begin, int end) {
    return "\"" + name + "\": {\"dtype\": \"" + type + "\", \"shape\": " + shape +
           ", \"data_offsets\": [" + std::to_string(begin) + ", " + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("Tensors of a safetensors file are read as floats", "[safetensors]") {
    const Folder folder;
    // 1.5, -2 and 65504 in float16; 1.5, -2 and 3e38 in bfloat16.
    const std::string halves("\x00\x3e\x00\xc0\xff\x7b", 6), bfloats("\xc0\x3f\x00\xc0\x62\x7f", 6);
    const std::string header =
        "{\"__metadata__\": {\"format\": \"pt\"}, " + tensor("f", "F32", "[2, 1]", 0, 8) + ", " +
        tensor("h", "F16", "[3]", 8, 14) + ", " + tensor("b", "BF16", "[3]", 14, 20) + ", " +
        tensor("i", "I64", "[]", 20, 28) + ", " + tensor("none", "F32", "[0, 4]", 28, 28) + "}   ";
    const SafetensorsFile file(folder.write(
        "x.safetensors",
        safetensors(header, bytes_of({1, 2.5f}) + halves + bfloats + std::string(8, '\0'))));
    REQUIRE(file.tensors().size() == 5);
    const auto values = [&](const std::string& name) {
        const SafetensorsTensor& one = file.tensors().at(name);
        std::vector<float> made(static_cast<std::size_t>(one.shape.numel()));
        file.read(one, made.data());
        return made;
    };
    CHECK(file.tensors().at("f").shape == Shape{2, 1});
    CHECK(values("f") == std::vector<float>{1, 2.5f});
    CHECK(values("h") == std::vector<float>{1.5f, -2, 65504});
    CHECK(values("b")[0] == 1.5f);
    CHECK(values("b")[1] == -2);
    CHECK(values("b")[2] > 2.9e38f);
    CHECK(values("none").empty());
    check_error(ErrorKind::unsupported, {"'i'", "I64", "F32, F16 and BF16"}, [&] { values("i"); });
}

TEST_CASE("Damaged safetensors files are errors", "[safetensors]") {
    const Folder folder;
    const std::string eight(8, '\0');
    const auto refused = [&](const std::vector<std::string>& words, const std::string& bytes) {
        check_error(ErrorKind::format, words,
                    [&] { SafetensorsFile(folder.write("x.safetensors", bytes)); });
    };
    const auto of = [&](const std::string& inner) { return safetensors("{" + inner + "}", eight); };
    refused({"not a safetensors file"}, "");
    refused({"not a safetensors file"}, "short");
    refused({"HDF5"}, "\x89HDF\r\n\x1a\n and more");
    std::string longer = of(tensor("a", "F32", "[2]", 0, 8));
    longer[5] = '\x01';
    refused({"its header has"}, longer);
    refused({"x.safetensors:1"}, of("\"a\": "));
    refused({"'a' appears twice"},
            of(tensor("a", "F32", "[2]", 0, 8) + "," + tensor("a", "F32", "[2]", 0, 8)));
    refused({"dtype", "does not have"}, of(tensor("a", "F33", "[2]", 0, 8)));
    refused({"dtype"}, of(R"("a": {"shape": [2], "data_offsets": [0, 8]})"));
    refused({"shape", "-2"}, of(tensor("a", "F32", "[-2]", 0, 8)));
    refused({"shape", "2^60"}, of(tensor("a", "F32", "[4294967296, 4294967296]", 0, 8)));
    refused({"8 bytes for 3 elements of F32"}, of(tensor("a", "F32", "[3]", 0, 8)));
    refused({"ends at byte 12 of data that have 8"}, of(tensor("a", "F32", "[3]", 0, 12)));
    refused({"data_offsets", "two numbers"}, of(tensor("a", "F32", "[2]", 8, 0)));
    refused({"data_offsets", "two numbers"}, of(tensor("a", "F32", "[2]", -8, 0)));
    refused({"'b' begin at byte 0, those before it end at 4"},
            of(tensor("a", "F32", "[1]", 0, 4) + "," + tensor("b", "F32", "[2]", 0, 8)));
    refused({"'a' begin at byte 4"}, of(tensor("a", "F32", "[1]", 4, 8)));
    refused({"tensors have 4 bytes of data, the file has 8"}, of(tensor("a", "F32", "[1]", 0, 4)));
}

TEST_CASE("A folder whose parts do not fit is an error", "[safetensors]") {
    const Folder folder;
    const std::string path = folder.path().string();
    const auto refused = [&](ErrorKind kind, const std::vector<std::string>& words) {
        check_error(kind, words, [&] { language::open_model(path)->sizes(); });
    };
    refused(ErrorKind::not_found, {"config.json"});
    folder.write("config.json", R"({"architectures": ["LlamaForCausalLn"]})");
    refused(ErrorKind::unsupported, {"LlamaForCausalLn", "did you mean 'LlamaForCausalLM'"});
    folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "gelu"})");
    refused(ErrorKind::unsupported, {"hidden_act is 'gelu'", "silu"});
    folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"]})");
    refused(ErrorKind::not_found, {"model.safetensors"});
    const std::string index = "model.safetensors.index.json";
    folder.write(index, R"({"weight_map": {"a": "../x.safetensors"}})");
    refused(ErrorKind::format, {"outside"});
    folder.write(index, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
    folder.write("1.safetensors", safetensors("{" + tensor("a", "F32", "[1]", 0, 4) + "}", "1234"));
    folder.write("2.safetensors", safetensors("{" + tensor("a", "F32", "[1]", 0, 4) + "}", "1234"));
    refused(ErrorKind::format, {"'a' in two files"});
    folder.write("2.safetensors", safetensors("{" + tensor("c", "F32", "[1]", 0, 4) + "}", "1234"));
    refused(ErrorKind::format, {"'b' is not in '2.safetensors'"});
    folder.write(index, R"({"weight_map": {"a": "1.safetensors", "c": "2.safetensors"}})");
    refused(ErrorKind::format, {"num_hidden_layers"});
    folder.write("config.json",
                 R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 0})");
    refused(ErrorKind::format, {"num_hidden_layers is 0"});
    folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
        "hidden_size": 4, "num_attention_heads": 2, "max_position_embeddings": 8})");
    refused(ErrorKind::format, {"no table of embeddings"});
}
