// SPDX-License-Identifier: MIT
// Encoders: pooled features of tiny models whose values follow from a seed are those that
// `transformers` computed (golden_encoders.py), in whatever company a text is read; and what bad
// models and texts get.
#include "language/encoder.hpp"

#include "language/tokenizer.hpp"
#include "safetensors_writer.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "tiny_model.hpp"

#include <dlprim/embedding_model.hpp>
#include <dlprim/language.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlprim;
using namespace dlprim::testing;
using language::Encoder;
using language::space_mark;
using language::Tokenizer;

namespace {

using nlohmann::json;
using Texts = std::vector<std::vector<std::int32_t>>;

const json& golden() {
    static const json all = [] {
        std::ifstream file(DLPRIM_GOLDEN_ENCODERS, std::ios::binary);
        return json::parse(file);
    }();
    return all;
}

/// A model's folder. Seeds of tensors are numbers from 1.
void write_model(const Folder& folder, const json& model) {
    json header;
    std::string data;
    std::uint32_t seed = 0;
    for (const auto& [tensor, how] : model["tensors"].items()) {
        std::size_t count = 1;
        for (const std::size_t size : how[0]) count *= size;
        const std::size_t first = data.size();
        data += bytes_of(uniform_values(++seed, count, how[1], how[2]));
        header[tensor] = {
            {"dtype", "F32"}, {"shape", how[0]}, {"data_offsets", {first, data.size()}}};
    }
    folder.write("config.json", model["config"].dump());
    folder.write("model.safetensors", safetensors(header.dump(), data));
}

void write_pooling(const Folder& folder, const char* mode) {
    const json pooling{{"word_embedding_dimension", 32},
                       {"pooling_mode_mean_tokens", std::string(mode) == "mean"},
                       {"pooling_mode_cls_token", std::string(mode) == "first"},
                       {"pooling_mode_lasttoken", std::string(mode) == "last"}};
    std::filesystem::create_directories(folder.path() / "1_Pooling");
    folder.write("1_Pooling/config.json", pooling.dump());
}

std::vector<float> embed(const Context& context, const std::string& path, std::int64_t tokens,
                         const Texts& texts) {
    const std::shared_ptr<const language::ModelFile> file = language::open_model(path);
    Encoder encoder(context, file, file->sizes(), tokens, {});
    return encoder.embed(texts);
}

void check_rows(const std::vector<float>& rows, const json& expected) {
    REQUIRE(rows.size() == expected.size() * expected[0].size());
    double scale = 0, error = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double want = expected[i / expected[0].size()][i % expected[0].size()];
        scale = std::max(scale, std::abs(want));
        error = std::max(error, std::abs(rows[i] - want));
    }
    INFO("the largest feature is " << scale << ", the error " << error);
    CHECK(error <= 1e-5 * scale);
}

}  // namespace

TEST_CASE("Embeddings are those of Hugging Face's transformers", "[encoder]") {
    const auto texts = golden()["tokens"].get<Texts>();
    for (const Context& context : test_devices())
        for (const auto& [name, model] : golden()["models"].items()) {
            INFO(name);
            const Folder folder;
            write_model(folder, model);
            const std::string path = folder.path().string();
            check_rows(embed(context, path, 64, texts), model["mean"]);
            if (name != "bert") continue;
            for (const char* way : {"first", "last", "mean"}) {
                INFO(way);
                write_pooling(folder, way);
                check_rows(embed(context, path, 128, texts), model[way]);
            }
        }
}

TEST_CASE("Steps are filled, and texts keep their order", "[encoder]") {
    const Folder folder;
    const json& model = golden()["models"]["roberta"];
    write_model(folder, model);
    const auto few = golden()["tokens"].get<Texts>();
    Texts many;
    json expected = json::array();
    for (std::size_t i = 0; i < 60; ++i) {
        many.push_back(few[i * i % few.size()]);
        expected.push_back(model["mean"][i * i % few.size()]);
    }
    check_rows(embed(Context("cpu"), folder.path().string(), 1, many), expected);
    CHECK(embed(Context("cpu"), folder.path().string(), 1, {}).empty());
}

namespace {

json word_pieces() {
    json words{{"[UNK]", 2}, {"[CLS]", 3}, {"[SEP]", 4}};
    for (int i = 0; i < 26; ++i) {
        const std::string letter(1, static_cast<char>('a' + i));
        words[letter] = 10 + i;
        words["##" + letter] = 40 + i;
    }
    return {{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", words}}},
            {"normalizer", {{"type", "BertNormalizer"}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"post_processor",
             {{"type", "BertProcessing"}, {"cls", {"[CLS]", 3}}, {"sep", {"[SEP]", 4}}}}};
}

json unigrams() {
    json words = json::array({{"<s>", 0.0}, {"<pad>", 0.0}, {"</s>", 0.0}, {"<unk>", 0.0}}),
         added = json::array();
    for (std::size_t i = 0; i < words.size(); ++i)
        added.push_back({{"id", i}, {"content", words[i][0]}, {"special", true}});
    for (int i = 0; i < 26; ++i)
        words.push_back({std::string(1, static_cast<char>('a' + i)), -3.0 - i});
    words.push_back({space_mark, -2.5});
    return {{"model", {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", words}}},
            {"added_tokens", added},
            {"normalizer",
             {{"type", "Sequence"},
              {"normalizers",
               {{{"type", "Strip"}},
                {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}}}}},
            {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", space_mark}}},
            {"post_processor",
             {{"type", "RobertaProcessing"}, {"cls", {"<s>", 0}}, {"sep", {"</s>", 2}}}}};
}

}  // namespace

TEST_CASE("A folder becomes a GGUF file with the same embeddings and tokens", "[encoder]") {
    const auto texts = golden()["tokens"].get<Texts>();
    for (const char* name : {"bert", "distilbert", "roberta"}) {
        INFO(name);
        const Folder folder;
        write_model(folder, golden()["models"][name]);
        write_pooling(folder, "first");
        const bool is_unigram = std::string(name) == "roberta";
        folder.write("tokenizer.json", (is_unigram ? unigrams() : word_pieces()).dump());
        const std::string path = folder.path().string(), gguf = folder.file("model.gguf");
        convert_to_gguf(path, gguf);
        check_rows(embed(Context("cpu"), gguf, 64, texts), golden()["models"][name]["first"]);
        const auto tokens_of = [&](const std::string& file) {
            return Tokenizer(language::open_model(file)->tokenizer(), 96, file)
                .encode("  a  bc d\u00e9f ");
        };
        CHECK(tokens_of(gguf) == tokens_of(path));
        if (std::string(name) != "distilbert") {
            convert_to_hugging_face(gguf, folder.file("made"));
            check_rows(embed(Context("cpu"), folder.file("made"), 64, texts),
                       golden()["models"][name]["first"]);
            const auto made = language::open_model(folder.file("made"))->tokenizer();
            CHECK(made.tokens == language::open_model(path)->tokenizer().tokens);
            CHECK(tokens_of(folder.file("made")) == tokens_of(path));
        }
        const auto from = language::open_model(path)->tokenizer(),
                   to = language::open_model(gguf)->tokenizer();
        CHECK(to.tokens == from.tokens);
        CHECK(to.word_piece == from.word_piece);
        CHECK(to.unknown == from.unknown);
        CHECK(std::pair(to.begin, to.separator) == std::pair(from.begin, from.separator));
        CHECK(to.add_begin);
    }
}

TEST_CASE("Encoders make no text, and other models no embeddings", "[encoder]") {
    const Folder folder;
    write_model(folder, golden()["models"]["bert"]);
    CHECK(is_embedding_model(folder.path().string()));
    check_error(ErrorKind::unsupported, {"is an encoder (bert)", "dlprim_embed"},
                [&] { LanguageModel(Context("cpu"), folder.path().string()); });
    const std::string decoder = folder.write("tiny.gguf", TinyLlama({}).writer().bytes());
    CHECK(!is_embedding_model(decoder));
    check_error(ErrorKind::unsupported, {"makes text (llama)", "need an encoder"},
                [&] { EmbeddingModel(Context("cpu"), decoder); });
}

TEST_CASE("Texts that no encoder reads are errors", "[encoder]") {
    const Folder folder;
    write_model(folder, golden()["models"]["bert"]);
    const auto refuse = [&](const std::vector<std::string>& words, const Texts& texts) {
        check_error(ErrorKind::invalid_argument, words,
                    [&] { embed(Context("cpu"), folder.path().string(), 64, texts); });
    };
    refuse({"text 2", "41 tokens", "at most 40"}, {{1}, std::vector<std::int32_t>(41, 3)});
    refuse({"text 1 has no tokens"}, {{}});
    refuse({"token 96"}, {{96}});
    refuse({"token -1"}, {{-1}});
    folder.write("sentence_bert_config.json", R"({"max_seq_length": 8})");
    refuse({"9 tokens", "at most 8"}, {std::vector<std::int32_t>(9, 3)});
}

TEST_CASE("Encoders that are not supported say what is", "[encoder]") {
    const auto refuse = [](ErrorKind kind, const std::vector<std::string>& words,
                           const auto& change) {
        const Folder folder;
        json model = golden()["models"]["bert"];
        write_model(folder, model);
        change(folder, model);
        check_error(kind, words, [&] {
            embed(Context("cpu"), folder.path().string(), 64, {{1, 2}});
        });
    };
    const auto with = [](const char* key, const char* value) {
        return [key, value](const Folder& folder, json& model) {
            model["config"][key] = value;
            folder.write("config.json", model["config"].dump());
        };
    };
    const auto file = [](const char* name, const char* text) {
        return [name, text](const Folder& folder, const json&) {
            std::filesystem::create_directories((folder.path() / name).parent_path());
            folder.write(name, text);
        };
    };
    refuse(ErrorKind::unsupported, {"hidden_act", "'relu'", "gelu"}, with("hidden_act", "relu"));
    refuse(ErrorKind::unsupported, {"position_embedding_type"},
           with("position_embedding_type", "relative_key"));
    refuse(ErrorKind::unsupported, {"pooling_mode_max_tokens", "mean, cls and lasttoken"},
           file("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})"));
    refuse(ErrorKind::unsupported, {"several modes"},
           file("1_Pooling/config.json", R"({"pooling_mode": ["mean", "cls"]})"));
    refuse(
        ErrorKind::unsupported, {"sentence_transformers.models.Dense"},
        file("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2"}])"));
    refuse(ErrorKind::format, {"leads out of"},
           file("modules.json", R"([{"type": "a.Pooling", "path": "../x"}])"));
    refuse(ErrorKind::format, {"max_seq_length", "1 or more"},
           file("sentence_bert_config.json", R"({"max_seq_length": 0})"));
}
