// SPDX-License-Identifier: MIT
// WordPiece: tokens beside those of Hugging Face's tokenizers (golden_encoders.py), and what
// damaged tables get.
#include "language/wordpiece.hpp"

#include "language/hugging_face_tokenizer.hpp"
#include "language/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlprim;
using namespace dlprim::testing;
using namespace dlprim::language;

namespace {

using nlohmann::json;

constexpr std::int64_t vocabulary = 330;  // of a model that has more tokens than its tokenizer

json golden() {
    std::ifstream file(DLPRIM_GOLDEN_ENCODERS, std::ios::binary);
    return json::parse(file);
}

Tokenizer tokenizer_of(const json& text) {
    return {parse_tokenizer(text.dump(), "tokenizer.json", vocabulary), vocabulary, "fuzz"};
}

json a_tokenizer() {
    return golden()["tokenizers"]["uncased"]["json"];
}

}  // namespace

TEST_CASE("Tokens of WordPiece are those of Hugging Face's tokenizers", "[wordpiece]") {
    const json all = golden();
    for (const auto& [name, one] : all["tokenizers"].items()) {
        INFO(name);
        const Tokenizer tokenizer = tokenizer_of(one["json"]);
        for (std::size_t i = 0; i < all["texts"].size(); ++i) {
            INFO(all["texts"][i].dump());
            std::vector<std::int32_t> tokens = tokenizer.encode(all["texts"][i].get<std::string>());
            tokens.insert(tokens.begin(), tokenizer.begin());
            tokens.push_back(tokenizer.separator());
            CHECK(json(tokens).dump() == one["cases"][i].dump());
        }
    }
}

TEST_CASE("Tokens of WordPiece have texts", "[wordpiece]") {
    const Tokenizer tokenizer = tokenizer_of(a_tokenizer());
    std::string text;
    for (const std::int32_t token : tokenizer.encode("The QUICK fox"))
        text += tokenizer.bytes(token);
    CHECK(text == " the quick fox");
}

TEST_CASE("WordPiece that is damaged or unknown is an error", "[wordpiece]") {
    const auto refuse = [](ErrorKind kind, const std::vector<std::string>& words,
                           const auto& change) {
        json text = a_tokenizer();
        change(text);
        check_error(kind, words, [&] { tokenizer_of(text).encode("a text"); });
    };
    refuse(ErrorKind::unsupported, {"without BertPreTokenizer"},
           [](json& text) { text["pre_tokenizer"] = nullptr; });
    refuse(ErrorKind::unsupported, {"has the type Whitespace", "BertPreTokenizer for WordPiece"},
           [](json& text) { text["pre_tokenizer"]["type"] = "Whitespace"; });
    refuse(ErrorKind::unsupported, {"is 'WordLevel'", "Unigram and WordPiece"},
           [](json& text) { text["model"]["type"] = "WordLevel"; });
    refuse(ErrorKind::format, {"unk_token", "no token of the vocabulary"},
           [](json& text) { text["model"]["unk_token"] = "[X]"; });
    refuse(ErrorKind::format, {"max_input_chars_per_word", "1 to 500"},
           [](json& text) { text["model"]["max_input_chars_per_word"] = 100000; });
    refuse(ErrorKind::format, {"is 1000", "330 tokens"},
           [](json& text) { text["model"]["vocab"]["far"] = 1000; });
    refuse(ErrorKind::format, {"another token, too"},
           [](json& text) { text["model"]["vocab"]["twice"] = 7; });
    refuse(ErrorKind::format, {"must be a token and its number"}, [](json& text) {
        text["post_processor"] = {{"type", "BertProcessing"}, {"cls", {1}}, {"sep", {1}}};
    });
    TokenizerTables tables;
    tables.model = "bert";
    tables.tokens = {"[UNK]", "\u2581a"};
    CHECK(message_of(ErrorKind::format, [&] { Tokenizer(tables, 2, "x.gguf"); }) ==
          "the tokenizer of 'x.gguf' has no token for unknown words among its 2");
    tables.unknown = 0;
    tables.separator = 2;
    CHECK(message_of(ErrorKind::format, [&] { Tokenizer(tables, 2, "x.gguf"); }) ==
          "the tokenizer of 'x.gguf' names the special token 2, of 2");
}

TEST_CASE("A vocab.txt has the tokens of its tokenizer.json", "[wordpiece]") {
    const json all = golden();
    for (const auto& [name, one] : all["tokenizers"].items()) {
        if (name == "plain") continue;  // which no tokenizer_config.json says
        INFO(name);
        const json& words = one["json"]["model"]["vocab"];
        std::vector<std::string> lines(words.size());
        for (const auto& [word, number] : words.items()) lines.at(number) = word;
        std::string file;
        for (const std::string& line : lines) file += line + "\r\n";
        json how{{"unk_token", {{"content", "[UNK]"}}}, {"sep_token", "[SEP]"}};
        how["do_lower_case"] = name != "cased";
        if (name == "lowered") how["strip_accents"] = false;
        const JsonDocument document(how.dump(), "tokenizer_config.json");
        const Tokenizer tokenizer(parse_vocabulary(file, document.root(), vocabulary), vocabulary,
                                  name);
        const Tokenizer same = tokenizer_of(one["json"]);
        CHECK(tokenizer.begin() == same.begin());
        CHECK(tokenizer.separator() == same.separator());
        for (const auto& text : all["texts"].get<std::vector<std::string>>())
            if (text.find("[unused1]") == std::string::npos)  // special in tokenizer.json alone
                CHECK(tokenizer.encode(text) == same.encode(text));
    }
}
