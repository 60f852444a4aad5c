// SPDX-License-Identifier: MIT
// tokenizer.json, and SentencePiece's models in files of their own and as tables of GGUF: tokens
// beside those of Hugging Face's tokenizers and of sentencepiece (golden_tokenizers.py), and what
// damaged or unknown ones get.
#include "base/base64.hpp"
#include "language/hugging_face_tokenizer.hpp"
#include "language/sentencepiece.hpp"
#include "language/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlprim;
using namespace dlprim::testing;
using namespace dlprim::language;

namespace {

using nlohmann::json;

const json& golden_tokenizers() {
    static const json all = [] {
        std::ifstream file(DLPRIM_GOLDEN_TOKENIZERS, std::ios::binary);
        return json::parse(file);
    }();
    return all;
}

constexpr std::int64_t vocabulary = 640;  // of a model that has more tokens than its tokenizer

void check_cases(const Tokenizer& tokenizer, const json& texts, const json& cases) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
        INFO(texts[i].dump());
        CHECK(json(tokenizer.encode(texts[i].get<std::string>())).dump() == cases[i].dump());
    }
}

TokenizerTables tables_of_json(const json& tokenizer) {
    return parse_tokenizer(tokenizer.dump(), "tokenizer.json", vocabulary);
}

}  // namespace

#if DLPRIM_WITH_ICU

TEST_CASE("Tokens of a tokenizer.json are those of Hugging Face's tokenizers", "[tokenizer]") {
    for (const auto& [name, one] : golden_tokenizers().items()) {
        if (!one.is_object() || !one.contains("json")) continue;
        INFO(name);
        const TokenizerTables tables = tables_of_json(one["json"]);
        const Tokenizer tokenizer(tables, vocabulary, name);
        json cases = one["cases"];
        if (tokenizer.begin() >= 0)
            for (json& tokens : cases) {
                CHECK(tokens[0] == tokenizer.begin());
                tokens.erase(0);
            }
        CHECK((tokenizer.begin() >= 0) == (name == "llama3"));
        check_cases(tokenizer, golden_tokenizers()["texts"], cases);
    }
}

TEST_CASE("Text with bytes as tokens comes back", "[tokenizer]") {
    const Tokenizer tokenizer(tables_of_json(golden_tokenizers()["metaspace_never"]["json"]),
                              vocabulary, "test");
    for (const json& text : golden_tokenizers()["texts"]) {
        std::string back, wanted = text;
        for (const std::int32_t token : tokenizer.encode(wanted, false))
            back += tokenizer.bytes(token);
        // The sign for a space comes back as one.
        for (std::size_t at = 0; (at = wanted.find(space_mark)) != std::string::npos;)
            wanted.replace(at, space_mark.size(), " ");
        CHECK(back == wanted);
    }
}

TEST_CASE("A tokenizer.json that is damaged or unknown is an error", "[tokenizer]") {
    const auto refused = [&](ErrorKind kind, const std::vector<std::string>& words,
                             const auto& change) {
        json tokenizer = golden_tokenizers()["digits"]["json"];
        change(tokenizer);
        check_error(kind, words, [&] { Tokenizer(tables_of_json(tokenizer), vocabulary, "x"); });
    };
    const auto format = ErrorKind::format, unsupported = ErrorKind::unsupported;
    refused(format, {"tokenizer.json:1", "model"}, [](json& all) { all.erase("model"); });
    refused(format, {"model.vocab.q is -1"}, [](json& all) { all["model"]["vocab"]["q"] = -1; });
    refused(format, {"model.vocab.zzz", "640 tokens"},
            [](json& all) { all["model"]["vocab"]["zzz"] = 640; });
    refused(format, {"number of another token"},
            [](json& all) { all["model"]["vocab"]["zzz"] = 7; });
    refused(format, {"added_tokens[0].id", "another"},
            [](json& all) { all["added_tokens"][0]["id"] = 7; });
    refused(format, {"'q zzq'", "no token"}, [](json& all) {
        all["model"]["merges"].push_back({"q", "zzq"});
    });
    refused(format, {"model.merges[0]", "two tokens"},
            [](json& all) { all["model"]["merges"][0] = {"a"}; });
    refused(unsupported, {"model.type", "WordLevel", "BPE, Unigram and WordPiece"},
            [](json& all) { all["model"]["type"] = "WordLevel"; });
    refused(unsupported, {"end_of_word_suffix"},
            [](json& all) { all["model"]["end_of_word_suffix"] = "</w>"; });
    refused(unsupported, {"normalizer", "Lowercase"}, [](json& all) {
        all["normalizer"] = {{"type", "Lowercase"}};
    });
    refused(unsupported, {"pretokenizers[0]", "Punctuation", "Metaspace"}, [](json& all) {
        all["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Punctuation"}};
    });
    refused(unsupported, {"ICU", "regular expression"}, [](json& all) {
        all["pre_tokenizer"]["pretokenizers"][0] = {
            {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "(a"}}}};
    });
    refused(unsupported, {"behavior", "MergedWithNext"}, [](json& all) {
        all["pre_tokenizer"]["pretokenizers"][0] = {
            {"type", "Split"}, {"behavior", "MergedWithNext"}, {"pattern", {{"String", "a"}}}};
    });
    refused(unsupported, {"neither"}, [](json& all) { all["pre_tokenizer"] = nullptr; });
}

TEST_CASE("An expression that takes too long is an error", "[tokenizer]") {
    const Splitter splitter({"(a|aa)+$"}, false);
    check_error(ErrorKind::unsupported, {"ICU cannot split"},
                [&] { splitter.split(std::string(5000, 'a') + "b"); });
}

#endif

TEST_CASE("Tokens by scores are those of sentencepiece", "[tokenizer]") {
    const json& one = golden_tokenizers()["sentencepiece"];
    TokenizerTables tables;
    tables.model = "llama";
    tables.tokens = one["tokens"].get<std::vector<std::string>>();
    tables.scores = one["scores"].get<std::vector<double>>();
    tables.kinds = one["kinds"].get<std::vector<std::int64_t>>();
    tables.space = TokenizerTables::Space::each;
    const std::int64_t count = std::ssize(tables.tokens);
    check_cases(Tokenizer(tables, count, "gguf"), one["texts"], one["cases"]);

    const std::string bytes = from_base64(one["model"].get<std::string>()).value();
    const TokenizerTables own = parse_sentencepiece(bytes, "tokenizer.model");
    CHECK(own.tokens == tables.tokens);
    CHECK(own.kinds == tables.kinds);
    CHECK(own.space == tables.space);
    check_cases(Tokenizer(own, count, "own"), one["texts"], one["cases"]);

    for (const std::size_t size : {std::size_t{1}, bytes.size() / 2, bytes.size() - 1})
        CHECK_THROWS_AS(parse_sentencepiece(bytes.substr(0, size), "x"), Error);
    check_error(ErrorKind::format, {"'x'", "SentencePiece"},
                [] { parse_sentencepiece("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "x"); });
    check_error(ErrorKind::format, {"'x'", "no tokens"}, [] { parse_sentencepiece("", "x"); });
    // A token without a text, and a training of words.
    check_error(ErrorKind::unsupported, {"neither Unigram nor BPE"},
                [] { parse_sentencepiece(std::string_view("\x0a\x00\x12\x02\x18\x03", 6), "x"); });
    tables.scores.pop_back();
    check_error(ErrorKind::format, {"scores"}, [&] { Tokenizer(tables, count, "x"); });
}

TEST_CASE("A chat template is that of the folder", "[tokenizer]") {
    const Folder folder;
    const std::string path = folder.path().string();
    CHECK(!read_chat_template(path));
    folder.write("tokenizer_config.json", R"({"add_bos_token": true})");
    CHECK(!read_chat_template(path));
    folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool", "template": "a"},
        {"name": "default", "template": "b"}]})");
    CHECK(read_chat_template(path) == "b");
    folder.write("tokenizer_config.json", R"({"chat_template": "c"})");
    CHECK(read_chat_template(path) == "c");
    folder.write("chat_template.jinja", "d");
    CHECK(read_chat_template(path) == "d");
}
