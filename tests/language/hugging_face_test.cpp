// SPDX-License-Identifier: MIT
// Architectures beside Hugging Face's: logits of tiny models in folders, whose values follow from a
// seed, are those that `transformers` computed (golden_models.py), however a text is cut.
#include "language/session.hpp"
#include "safetensors_writer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <dlprim/language.hpp>
#include <dlprim/language_convert.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlprim;
using namespace dlprim::testing;
using language::Session;

namespace {

nlohmann::json golden_models() {
    std::ifstream file(DLPRIM_GOLDEN_MODELS, std::ios::binary);
    return nlohmann::json::parse(file);
}

/// Writes the tensors from number `begin` on, up to `end`, as one file. Seeds are numbers from 1.
void write_tensors(const Folder& folder, const std::string& name, const nlohmann::json& tensors,
                   std::size_t begin, std::size_t end) {
    nlohmann::json header;
    std::string data;
    std::uint32_t seed = 0;
    for (const auto& [tensor, how] : tensors.items()) {
        if (++seed <= begin || seed > end) continue;
        std::size_t count = 1;
        for (const std::size_t size : how[0]) count *= size;
        const std::size_t first = data.size();
        data += bytes_of(uniform_values(seed, count, how[1], how[2]));
        header[tensor] = {
            {"dtype", "F32"}, {"shape", how[0]}, {"data_offsets", {first, data.size()}}};
    }
    folder.write(name, safetensors(header.dump(), data));
}

/// The logits after each of `ends` tokens, read in the pieces between.
std::vector<std::vector<float>> read(const std::string& path,
                                     const std::vector<std::int32_t>& tokens,
                                     const std::vector<std::size_t>& ends) {
    const std::shared_ptr<const language::ModelFile> file = language::open_model(path);
    Session session(Context("cpu"), file, file->sizes(), {60, 16, {}});
    std::vector<std::vector<float>> logits;
    std::size_t at = 0;
    for (const std::size_t end : ends) {
        const std::span<const float> read = session.read(std::span(tokens).subspan(at, end - at));
        logits.emplace_back(read.begin(), read.end());
        at = end;
    }
    return logits;
}

}  // namespace

TEST_CASE("Logits are those of Hugging Face's transformers", "[hugging_face]") {
    const nlohmann::json all = golden_models();
    const auto tokens = all["tokens"].get<std::vector<std::int32_t>>();
    const auto ends = all["ends"].get<std::vector<std::size_t>>();
    for (const auto& [name, model] : all["models"].items()) {
        INFO(name);
        const Folder folder;
        folder.write("config.json", model["config"].dump());
        write_tensors(folder, "model.safetensors", model["tensors"], 0, 1000);
        const auto logits = read(folder.path().string(), tokens, ends);
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const auto want = model["logits"][i].get<std::vector<double>>();
            REQUIRE(logits[i].size() == want.size());
            double scale = 0, error = 0;
            for (std::size_t j = 0; j < want.size(); ++j) {
                scale = std::max(scale, std::abs(want[j]));
                error = std::max(error, std::abs(logits[i][j] - want[j]));
            }
            INFO(ends[i] << " tokens; the largest logit is " << scale << ", the error " << error);
            CHECK(error <= 1e-5 * scale);
        }
    }
}

TEST_CASE("A model in several files is the same as in one", "[hugging_face]") {
    const nlohmann::json all = golden_models();
    const nlohmann::json& model = all["models"]["qwen3"];
    const auto tokens = all["tokens"].get<std::vector<std::int32_t>>();
    const Folder one, several;
    one.write("config.json", model["config"].dump());
    write_tensors(one, "model.safetensors", model["tensors"], 0, 1000);
    several.write("config.json", model["config"].dump());
    nlohmann::json map;
    std::size_t seed = 0;
    for (const auto& [tensor, how] : model["tensors"].items())
        map[tensor] = seed++ < 9 ? "a.safetensors" : "b.safetensors";
    write_tensors(several, "a.safetensors", model["tensors"], 0, 9);
    write_tensors(several, "b.safetensors", model["tensors"], 9, 1000);
    several.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
    CHECK(read(one.path().string(), tokens, {20}) == read(several.path().string(), tokens, {20}));
}

#if DLPRIM_WITH_ICU

namespace {

/// A model's folder, with a token for each of the printable characters of ASCII but a few, and
/// for a pair.
void write_model(const Folder& folder, const nlohmann::json& model) {
    nlohmann::json vocabulary;
    for (int i = 0; i < 90; ++i) vocabulary[std::string(1, static_cast<char>(33 + i))] = i;
    vocabulary["el"] = 90;
    const nlohmann::json tokenizer{
        {"model",
         {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array({"e l"})}}},
        {"pre_tokenizer",
         {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}};
    folder.write("config.json", model["config"].dump());
    folder.write("tokenizer.json", tokenizer.dump());
    write_tensors(folder, "model.safetensors", model["tensors"], 0, 1000);
}

}  // namespace

TEST_CASE("A folder becomes a GGUF file with the same logits and tokens", "[hugging_face]") {
    const nlohmann::json all = golden_models();
    const auto tokens = all["tokens"].get<std::vector<std::int32_t>>();
    for (const auto& [name, model] : all["models"].items()) {
        INFO(name);
        const Folder folder;
        write_model(folder, model);
        const std::string gguf = folder.file("model.gguf");
        if (name == "llama_tied") {
            convert_to_gguf(folder.path().string(), gguf, true);
            CHECK(std::filesystem::file_size(gguf) <
                  std::filesystem::file_size(folder.file("model.safetensors")) * 3 / 4);
            continue;
        }
        convert_to_gguf(folder.path().string(), gguf);
        CHECK(read(gguf, tokens, {20}) == read(folder.path().string(), tokens, {20}));
        const LanguageModel from(Context("cpu"), folder.path().string()), to(Context("cpu"), gguf);
        CHECK(from.encode("hello") == to.encode("hello"));
        CHECK(to.architecture() == from.architecture());
    }
}

TEST_CASE("A folder or a GGUF file becomes a folder with the same logits and tokens",
          "[hugging_face]") {
    const nlohmann::json all = golden_models();
    const auto tokens = all["tokens"].get<std::vector<std::int32_t>>();
    for (const auto& [name, model] : all["models"].items()) {
        INFO(name);
        const Folder folder;
        write_model(folder, model);
        const std::string from = folder.path().string(), gguf = folder.file("model.gguf");
        const std::vector<std::vector<float>> logits = read(from, tokens, {20});
        convert_to_hugging_face(from, folder.file("copied"));
        CHECK(read(folder.file("copied"), tokens, {20}) == logits);
        convert_to_gguf(from, gguf);
        const std::string made = folder.file("made");
        if (!language::open_model(from)->sizes().rotary_factors.empty()) {
            check_error(ErrorKind::unsupported, {"factors for each pair of features"},
                        [&] { convert_to_hugging_face(gguf, made); });
            CHECK(!std::filesystem::exists(made));
            continue;
        }
        convert_to_hugging_face(gguf, made);
        CHECK(read(made, tokens, {20}) == logits);
        const LanguageModel first(Context("cpu"), from), last(Context("cpu"), made);
        CHECK(first.encode("hello,elf") == last.encode("hello,elf"));
        CHECK(first.architecture() == last.architecture());
        convert_to_hugging_face(gguf, folder.file("halves"), true);
        CHECK(std::filesystem::file_size(folder.file("halves/model.safetensors")) <
              std::filesystem::file_size(folder.file("made/model.safetensors")) * 3 / 4);
    }
}

TEST_CASE("A folder that has something is not written to", "[hugging_face]") {
    const Folder folder;
    write_model(folder, golden_models()["models"]["qwen3"]);
    const std::string path = folder.path().string();
    check_error(ErrorKind::io, {"exists and is no empty folder"},
                [&] { convert_to_hugging_face(path, path); });
    std::filesystem::create_directories(folder.file("empty"));
    convert_to_hugging_face(path, folder.file("empty/"));
    CHECK(std::filesystem::exists(folder.file("empty/config.json")));
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        names.push_back(entry.path().filename());
    CHECK(names.size() == 4);  // nothing is left of what was written first
}

#endif
