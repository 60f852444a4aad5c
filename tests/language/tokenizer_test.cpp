// SPDX-License-Identifier: MIT
// Tokenizers beside what PyPI's `tokenizers` makes of texts in many scripts, and tables that do not
// fit. Choice of tokens.
#include "language/tokenizer.hpp"

#include "language/characters.hpp"
#include "language/sampler.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>

using namespace dlprim;
using namespace dlprim::testing;
using namespace dlprim::language;

namespace {

nlohmann::json golden() {
    std::ifstream file(DLPRIM_GOLDEN_TOKENS, std::ios::binary);
    return nlohmann::json::parse(file);
}

TokenizerTables tables_of(const nlohmann::json& golden, const std::string& splitter) {
    TokenizerTables tables;
    tables.model = "gpt2";
    tables.splitter = splitter;
    tables.tokens = golden["tokens"].get<std::vector<std::string>>();
    tables.merges = golden["merges"].get<std::vector<std::string>>();
    tables.kinds.assign(tables.tokens.size(), 1);
    std::fill(tables.kinds.end() - golden["special"].get<int>(), tables.kinds.end(), 3);
    tables.ends = {std::ssize(tables.tokens) - 1};
    return tables;
}

Tokenizer tokenizer_of(const TokenizerTables& tables) {
    return Tokenizer(tables, std::ssize(tables.tokens), "test");
}

}  // namespace

#if DLPRIM_WITH_ICU

TEST_CASE("Tokens are those of Hugging Face's tokenizers", "[tokenizer]") {
    const nlohmann::json all = golden();
    const auto texts = all["texts"].get<std::vector<std::string>>();
    for (const auto& [splitter, cases] : all["cases"].items()) {
        const Tokenizer tokenizer = tokenizer_of(tables_of(all, splitter));
        for (std::size_t i = 0; i < texts.size(); ++i) {
            INFO(splitter << ": " << nlohmann::json(texts[i]).dump());
            const std::vector<std::int32_t> tokens = tokenizer.encode(texts[i]);
            CHECK(tokens == cases[i].get<std::vector<std::int32_t>>());
            std::string back;
            for (const std::int32_t token : tokens) back += tokenizer.bytes(token);
            CHECK(back == texts[i]);
        }
    }
}

TEST_CASE("Special tokens are text where the caller says so", "[tokenizer]") {
    const Tokenizer tokenizer = tokenizer_of(tables_of(golden(), "smollm"));
    const std::string text = "a<|im_start|>b";
    CHECK(tokenizer.encode(text).size() == 3);
    const auto tokens = tokenizer.encode(text, false);
    CHECK(tokens.size() > 3);
    std::string back;
    for (const std::int32_t token : tokens) back += tokenizer.bytes(token);
    CHECK(back == text);
}

TEST_CASE("Text that is not UTF-8 is an error that says where", "[tokenizer]") {
    const Tokenizer tokenizer = tokenizer_of(tables_of(golden(), "gpt-2"));
    for (const char* wrong :
         {"\xff", "\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe2\x82", "\xed\xa0\x80",
          "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xe0\x80\x80"})
        check_error(ErrorKind::invalid_argument, {"not UTF-8", "byte 4"},
                    [&] { tokenizer.encode(std::string("abc") + wrong); });
}

TEST_CASE("A long word is merged in time", "[tokenizer]") {
    const Tokenizer tokenizer = tokenizer_of(tables_of(golden(), "gpt-2"));
    const std::string word(300000, 'a');
    std::string back;
    for (const std::int32_t token : tokenizer.encode(word)) back += tokenizer.bytes(token);
    CHECK(back == word);
}

TEST_CASE("Tables of a tokenizer that do not fit are errors", "[tokenizer]") {
    const TokenizerTables good = tables_of(golden(), "gpt-2");
    const auto refused = [&](ErrorKind kind, const std::vector<std::string>& words,
                             const auto& change) {
        TokenizerTables tables = good;
        change(tables);
        check_error(kind, words, [&] { Tokenizer(tables, std::ssize(good.tokens), "x.gguf"); });
    };
    refused(ErrorKind::unsupported, {"x.gguf", "'rwkv'", "gpt2", "llama"},
            [](auto& tables) { tables.model = "rwkv"; });
    refused(ErrorKind::unsupported, {"'smolm'", "smollm", "qwen2"},
            [](auto& tables) { tables.splitter = "smolm"; });
    refused(ErrorKind::format, {"x.gguf", "tokens, the model has"},
            [](auto& tables) { tables.tokens.pop_back(); });
    refused(ErrorKind::format, {"kinds"}, [](auto& tables) { tables.kinds.pop_back(); });
    refused(ErrorKind::format, {"'ab'"}, [](auto& tables) { tables.merges.push_back("ab"); });
    refused(ErrorKind::format, {"'q zzq'", "no token"},
            [](auto& tables) { tables.merges.push_back("q zzq"); });
    refused(ErrorKind::format, {"special token 100000"},
            [](auto& tables) { tables.ends = {100000}; });
}

#else

TEST_CASE("Without ICU a tokenizer is an error that says so", "[tokenizer]") {
    check_error(ErrorKind::unsupported, {"ICU", "libicu-dev"},
                [] { tokenizer_of(tables_of(golden(), "gpt-2")); });
}

#endif

TEST_CASE("Text is cut before a character that is not whole", "[tokenizer]") {
    CHECK(unfinished("") == 0);
    CHECK(unfinished("a\xc3\xa9") == 0);
    CHECK(unfinished("a\xc3") == 1);
    CHECK(unfinished("\xf0\x9f\x91") == 3);
    CHECK(unfinished("\xf0\x9f\x91\x8b") == 0);
    CHECK(unfinished("\x80\x80\x80\x80") == 0);
}

TEST_CASE("Greedy choice is the first of the largest logits", "[sampler]") {
    Sampler greedy({});
    CHECK(greedy.choose(std::vector<float>{1, 3, 3, 2}, {}, 0).token == 1);
    CHECK(greedy.choose(std::vector<float>{-INFINITY, -5}, {}, 0).token == 1);
    check_error(ErrorKind::numeric, {"not numbers"}, [&] {
        greedy.choose(std::vector<float>{1, NAN}, {}, 0);
    });
}

TEST_CASE("Tokens are drawn with their probabilities", "[sampler]") {
    const std::vector<float> logits{0, 1, 2, 3, -INFINITY};
    const auto shares = [&](const GenerateOptions& options) {
        Sampler sampler(options);
        std::map<std::int32_t, double> counts;
        constexpr int draws = 20000;
        for (int i = 0; i < draws; ++i)
            counts[sampler.choose(logits, {}, static_cast<std::uint64_t>(i)).token] += 1.0 / draws;
        return counts;
    };
    // Against probabilities in double; 0.015 is over four deviations of a share.
    const auto check = [&](const GenerateOptions& options, std::vector<double> weights) {
        double sum = 0;
        for (const double weight : weights) sum += weight;
        const auto got = shares(options);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const auto found = got.find(static_cast<std::int32_t>(i));
            const double share = found == got.end() ? 0 : found->second;
            CHECK(std::abs(share - weights[i] / sum) < (weights[i] == 0 ? 1e-9 : 0.015));
        }
    };
    const double e = std::exp(1.0);
    check({.temperature = 1}, {1, e, e * e, e * e * e, 0});
    check({.temperature = 2}, {1, std::sqrt(e), e, e * std::sqrt(e), 0});
    check({.temperature = 1, .top_k = 2}, {0, 0, e * e, e * e * e, 0});
    // The likeliest has 0.644, two have 0.881, three 0.968.
    check({.temperature = 1, .top_p = 0.6}, {0, 0, 0, 1, 0});
    check({.temperature = 1, .top_p = 0.9}, {0, e, e * e, e * e * e, 0});
    check({.temperature = 1, .top_k = 1, .top_p = 1}, {0, 0, 0, 1, 0});
    // The likeliest is e times as likely as the next one.
    check({.temperature = 1, .min_p = 0.3}, {0, 0, e * e, e * e * e, 0});
    check({.temperature = 2, .min_p = 0.3}, {0, std::sqrt(e), e, e * std::sqrt(e), 0});
    check({.temperature = 1, .min_p = 1}, {0, 0, 0, 1, 0});
    CHECK(shares({.temperature = 1, .seed = 3}) == shares({.temperature = 1, .seed = 3}));
    CHECK(shares({.temperature = 1, .seed = 3}) != shares({.temperature = 1, .seed = 4}));
}

TEST_CASE("Options of drawing that make no sense are errors", "[sampler]") {
    for (const GenerateOptions& wrong :
         {GenerateOptions{.temperature = -1}, GenerateOptions{.temperature = NAN},
          GenerateOptions{.top_k = -1}, GenerateOptions{.top_p = 0}, GenerateOptions{.top_p = 1.5},
          GenerateOptions{.repetition_penalty = 0}, GenerateOptions{.repetition_window = -1},
          GenerateOptions{.min_p = 1.1}, GenerateOptions{.min_p = NAN},
          GenerateOptions{.alternatives = -1}})
        check_error(ErrorKind::invalid_argument, {}, [&] { Sampler{wrong}; });
}

TEST_CASE("A repetition penalty changes logits of tokens that were there", "[sampler]") {
    const std::vector<float> logits{4, 3, -1, -2};
    const std::vector<std::int32_t> before{2, 0, 0, 3};
    const auto choose = [&](const GenerateOptions& options, const std::vector<std::int32_t>& read) {
        return Sampler(options).choose(logits, read, 0).token;
    };
    CHECK(choose({.repetition_penalty = 1.2}, before) == 0);  // 3.33 once, not 2.78 twice
    CHECK(choose({.repetition_penalty = 1.5}, before) == 1);
    CHECK(choose({.repetition_penalty = 1.5, .repetition_window = 1}, before) == 0);
    CHECK(choose({.repetition_penalty = 1.5, .repetition_window = 2}, before) == 1);
    // A negative logit becomes smaller, too.
    CHECK(Sampler({.repetition_penalty = 3}).choose(std::vector<float>{-1, -2}, before, 0).token ==
          1);
}

TEST_CASE("Log-probabilities are those of the model", "[sampler]") {
    Sampler sampler({.repetition_penalty = 100,
                     .temperature = 0.1,
                     .log_probabilities = true,
                     .alternatives = 2});
    const std::vector<std::int32_t> before{3};
    const Sampler::Choice choice = sampler.choose(std::vector<float>{0, 1, 2, 3}, before, 0);
    const double sum = std::log(1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
    CHECK(choice.token == 2);
    CHECK(std::abs(choice.log_probability - (2 - sum)) < 1e-6);
    REQUIRE(choice.alternatives.size() == 2);
    CHECK(choice.alternatives[0].token == 3);
    CHECK(std::abs(choice.alternatives[0].log_probability - (3 - sum)) < 1e-6);
    CHECK(choice.alternatives[1].token == 2);
    CHECK(
        Sampler({.alternatives = 9}).choose(std::vector<float>{0, 1}, {}, 0).alternatives.size() ==
        2);
}
