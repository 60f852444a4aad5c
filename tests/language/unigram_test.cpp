// SPDX-License-Identifier: MIT
// Unigram: tokens beside those of Hugging Face's tokenizers and of sentencepiece
// (golden_unigram.py), and what damaged tables get.
#include "language/unigram.hpp"

#include "base/base64.hpp"
#include "gguf_writer.hpp"
#include "language/hugging_face_tokenizer.hpp"
#include "language/sentencepiece.hpp"
#include "language/tokenizer.hpp"
#include "language/tokenizer_json.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "tiny_model.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlprim;
using namespace dlprim::testing;
using namespace dlprim::language;

namespace {

using nlohmann::json;

constexpr std::int64_t unigram_vocabulary =
    700;  // of a model that has more tokens than its tokenizer
constexpr const char* unigram_kinds[] = {"words", "joined", "first", "stripped", "bytes"};

const json& unigram_golden() {
    static const json all = [] {
        std::ifstream file(DLPRIM_GOLDEN_UNIGRAM, std::ios::binary);
        return json::parse(file);
    }();
    return all;
}

TokenizerTables unigram_tables(const std::string& text) {
    return parse_tokenizer(text, "tokenizer.json", unigram_vocabulary);
}

void check_unigram(const TokenizerTables& tables, const json& one) {
    const Tokenizer tokenizer(tables, std::ssize(tables.tokens), "test");
    const json& texts = one.contains("texts") ? one["texts"] : unigram_golden()["texts"];
    for (std::size_t i = 0; i < texts.size(); ++i) {
        INFO(texts[i].dump());
        std::vector<std::int32_t> tokens = tokenizer.encode(texts[i].get<std::string>());
        if (tokenizer.begin() >= 0) tokens.insert(tokens.begin(), tokenizer.begin());
        if (tokenizer.separator() >= 0) tokens.push_back(tokenizer.separator());
        CHECK(json(tokens).dump() == one["cases"][i].dump());
    }
}

}  // namespace

TEST_CASE("Tokens of Unigram are those of Hugging Face's tokenizers", "[unigram]") {
    for (const char* name : unigram_kinds) {
        INFO(name);
        const json& one = unigram_golden()[name];
        const TokenizerTables tables = unigram_tables(one["json"].dump());
        CHECK(tables.separator.has_value() == (std::string(name) == "joined"));
        check_unigram(tables, one);
        // And those of the tokenizer.json that is written of it.
        check_unigram(unigram_tables(tokenizer_json(tables).dump()), one);
    }
}

TEST_CASE("Tokens of a tokenizer.model of Unigram are those of sentencepiece", "[unigram]") {
    const json& one = unigram_golden()["sentencepiece"];
    const std::string bytes = from_base64(one["model"].get<std::string>()).value();
    check_unigram(parse_sentencepiece(bytes, "tokenizer.model"), one);
}

TEST_CASE("Keys of GGUF say what ends a text of Unigram", "[unigram]") {
    const auto separator_of = [](bool adds_end, bool adds_separator) {
        const Folder folder;
        GgufWriter writer = TinyLlama({}).writer();
        writer.key("tokenizer.ggml.model", std::string("t5"))
            .key("tokenizer.ggml.tokens", std::vector<std::string>{"</s>", "\u2581", "a", "?"})
            .key("tokenizer.ggml.scores", std::vector<float>{0, -1, -2, -9})
            .key("tokenizer.ggml.eos_token_id", std::uint32_t{0})
            .key("tokenizer.ggml.unknown_token_id", std::uint32_t{3})
            .key("tokenizer.ggml.seperator_token_id", std::uint32_t{2})
            .key("tokenizer.ggml.add_eos_token", adds_end)
            .key("tokenizer.ggml.add_sep_token", adds_separator);
        const TokenizerTables tables =
            open_model(folder.write("model.gguf", writer.bytes()))->tokenizer();
        CHECK(Tokenizer(tables, 4, "test").encode(" a\u00e9") == std::vector{1, 2, 3});
        return tables.separator.value_or(-1);
    };
    CHECK(separator_of(true, false) == 0);
    CHECK(separator_of(true, true) == 0);
    CHECK(separator_of(false, true) == -1);
}

TEST_CASE("Unigram that is damaged or unknown is an error", "[unigram]") {
    const auto refuse = [](ErrorKind kind, const std::vector<std::string>& words,
                           const auto& change) {
        json text = unigram_golden()["words"]["json"];
        change(text);
        check_error(kind, words, [&] {
            Tokenizer(unigram_tables(text.dump()), unigram_vocabulary, "x").encode("a text");
        });
    };
    const auto format = ErrorKind::format, unsupported = ErrorKind::unsupported;
    refuse(format, {"model.vocab[0]", "a token and its score"},
           [](json& text) { text["model"]["vocab"][0] = {"a"}; });
    refuse(format, {"model.unk_id is 700"}, [](json& text) { text["model"]["unk_id"] = 700; });
    refuse(format, {"model.vocab has 701 tokens", "700"}, [](json& text) {
        text["model"]["vocab"] = json(701, json::array({"a", -1.0}));
    });
    refuse(format, {"precompiled_charsmap", "base64"},
           [](json& text) { text["normalizer"]["precompiled_charsmap"] = "?"; });
    refuse(format, {"table of characters", "damaged"},
           [](json& text) { text["normalizer"]["precompiled_charsmap"] = "AAAAAA=="; });
    refuse(unsupported, {"normalizer", "Lowercase", "Precompiled, Strip"}, [](json& text) {
        text["normalizer"] = {{"type", "Lowercase"}};
    });
    refuse(unsupported, {"neither"}, [](json& text) {
        text["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
    });
    refuse(unsupported, {"no token for byte 97"}, [](json& text) {
        text["model"]["unk_id"] = nullptr;
        text["added_tokens"] = json::array();
        text["model"]["vocab"] = json::array({json::array({space_mark, -1.0})});
    });
    TokenizerTables tables;
    tables.model = "t5";
    tables.tokens = {"a", "b"};
    tables.scores = {-1};
    check_error(format, {"'x.gguf'", "2 tokens and scores of 1"},
                [&] { Tokenizer(tables, 2, "x.gguf"); });
    tables.scores = {-1, std::numeric_limits<double>::infinity()};
    check_error(format, {"'x.gguf'", "token 1", "no number"},
                [&] { Tokenizer(tables, 2, "x.gguf"); });
}

TEST_CASE("A damaged table of characters is an error or changes other characters", "[unigram]") {
    const std::string map =
        from_base64(unigram_golden()["words"]["json"]["normalizer"]["precompiled_charsmap"]
                        .get<std::string>())
            .value();
    const std::string text = "Ｆｕｌｌ ﬁne e\u0301 x";
    for (std::size_t at = 0; at < map.size(); at += 7)
        for (const char byte : {'\0', '\x7f', '\xff'}) {
            std::string changed = map;
            changed[at] = byte;
            try {
                const CharacterMap table(changed, "x");
                (void)table.plain_by_characters(text);
                (void)table.plain_by_longest(text);
            } catch (const Error& error) {
                CHECK(error.kind() == ErrorKind::format);
            }
        }
}
