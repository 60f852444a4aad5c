// SPDX-License-Identifier: MIT
// LanguageModel through its public header, on the host: what is read, remembered and given out.
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "tiny_model.hpp"

#include <dlprim/language.hpp>

#include <algorithm>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A file whose tokens are the 256 bytes and an end.
std::string file_of_bytes(const Folder& folder) {
    TinySizes sizes;
    sizes.vocabulary = 257;
    std::vector<std::string> tokens;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        const unsigned code = printable ? byte : next++;
        std::string name;
        if (code >= 128) name += static_cast<char>(0xC0 | code >> 6);
        name += static_cast<char>(code < 128 ? code : 0x80 | (code & 63));
        tokens.push_back(name);
    }
    tokens.emplace_back("<|end|>");
    std::vector<std::int32_t> kinds(257, 1);
    kinds.back() = 3;
    GgufWriter writer = TinyLlama(sizes).writer();
    writer.key("tokenizer.ggml.model", std::string("gpt2"))
        .key("tokenizer.ggml.pre", std::string("gpt-2"))
        .key("tokenizer.ggml.tokens", tokens)
        .key("tokenizer.ggml.token_type", kinds)
        .key("tokenizer.ggml.eos_token_id", std::uint32_t{256})
        .key("tokenizer.ggml.bos_token_id", std::uint32_t{256})
        .key("tokenizer.ggml.add_bos_token", true);
    return folder.write("bytes.gguf", writer.bytes());
}

}  // namespace

TEST_CASE("A model reads tokens, remembers them and makes text", "[language_model]") {
    const Folder folder;
    LanguageModel model(Context("cpu"), file_of_bytes(folder));
    CHECK(model.architecture() == "llama");
    CHECK(model.vocabulary() == 257);
    CHECK(model.context_length() == 600);
    const std::vector<std::int32_t> tokens = model.encode("hi<|end|>");
    CHECK(tokens == std::vector<std::int32_t>{256, 'h', 'i', 256});
    CHECK(model.decode(tokens) == "<|end|>hi<|end|>");

    // Greedy text is what the logits of read() say.
    std::string given;
    const GenerateResult result =
        model.generate("hello", {.length = 12}, [&](std::string_view text) {
            given += text;
            return true;
        });
    CHECK(given == result.text);
    CHECK(result.text == model.decode(result.tokens));
    CHECK(result.prompt_tokens == 6);
    CHECK(model.position() == 5 + static_cast<std::int64_t>(result.tokens.size()));
    model.forget();
    std::vector<std::int32_t> next = model.encode("hello");
    for (const std::int32_t token : result.tokens) {
        const std::vector<float> logits = model.read(next);
        CHECK(std::max_element(logits.begin(), logits.end()) - logits.begin() == token);
        next = {token};
    }
    CHECK(model.peak_bytes() > 0);
}

TEST_CASE("Texts of a batch are those of each prompt alone", "[language_model]") {
    const Folder folder;
    const std::string path = file_of_bytes(folder);
    LanguageModel alone(Context("cpu"), path);
    LanguageModel batch(Context("cpu"), path, {.batch = 3});
    std::vector<std::vector<std::int32_t>> prompts;
    for (const char* prompt : {"hello", "a", "how do you do", "", "xyz xyz", "9876543210", "q"})
        prompts.push_back(alone.encode(prompt));
    GenerateOptions options{.length = 15, .repetition_penalty = 1.2};
    options.stop = {alone.generate(prompts[0], options).text.substr(6, 1)};
    std::vector<std::string> given(prompts.size());
    const std::vector<GenerateResult> results =
        batch.generate(prompts, options, [&](std::size_t number, std::string_view text) {
            given.at(number) += text;
            return true;
        });
    REQUIRE(results.size() == prompts.size());
    std::set<GenerateResult::End> ends;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        INFO(i);
        const GenerateResult one = alone.generate(prompts[i], options);
        CHECK(results[i].tokens == one.tokens);
        CHECK(results[i].text == one.text);
        CHECK(results[i].end == one.end);
        CHECK(results[i].prompt_tokens == one.prompt_tokens);
        CHECK(given[i] == one.text);
        ends.insert(one.end);
    }
    CHECK(ends.size() > 1);
    CHECK(batch.position() == 0);
    CHECK(batch.memory().per_token == 3 * alone.memory().per_token);

    // All end where the caller says so, or where the context does.
    int calls = 0;
    for (const GenerateResult& result :
         batch.generate(prompts, {.length = 30}, [&](std::size_t, auto) { return ++calls < 9; }))
        CHECK((result.end == GenerateResult::End::caller || !result.text.empty()));
    CHECK(calls >= 9);
    LanguageModel small(Context("cpu"), path, {.context = 14, .batch = 2});
    const auto full = small.generate(std::vector{prompts[2], prompts[1]}, {.length = 30});
    CHECK(full[0].end == GenerateResult::End::context);
    CHECK(full[0].tokens.size() < full[1].tokens.size());
    const std::vector<std::vector<std::int32_t>> with_empty{prompts[1], {}};
    check_error(ErrorKind::invalid_argument, {"prompt 2", "is empty"},
                [&] { small.generate(with_empty, {}); });
    check_error(ErrorKind::invalid_argument, {"a batch has 1 to 256"},
                [&] { LanguageModel(Context("cpu"), path, {.batch = 0}); });
}

TEST_CASE("With precision fp16 a model remembers halves", "[language_model]") {
    const Folder folder;
    const std::string path = file_of_bytes(folder);
    LanguageModel whole(Context("cpu"), path),
        half(Context("cpu"), path, {.precision = Precision::fp16});
    CHECK(2 * half.memory().per_token == whole.memory().per_token);
    const std::vector<std::int32_t> prompt = whole.encode("how do you do");
    const std::vector<float> want = whole.read(prompt), got = half.read(prompt);
    double scale = 0, error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        scale = std::max(scale, std::abs(static_cast<double>(want[i])));
        error =
            std::max(error, std::abs(static_cast<double>(want[i]) - static_cast<double>(got[i])));
    }
    CHECK(error > 0);
    CHECK(error < 2e-3 * scale);
}

TEST_CASE("Texts that are added while others run are the same bits", "[language_model]") {
    const Folder folder;
    const std::string path = file_of_bytes(folder);
    LanguageModel model(Context("cpu"), path, {.prompt_piece = 16, .batch = 4});
    // Of prompts that are read in pieces, in one with a rest, and token by token.
    const std::string letters = "the quick brown fox jumps over the lazy dog again and again";
    std::vector<std::vector<std::int32_t>> prompts;
    std::vector<GenerateOptions> options;
    for (const std::size_t length : {59, 1, 20, 33, 14, 48}) {
        GenerateOptions how{.length = 12, .repetition_penalty = 1.3, .temperature = 1.5};
        how.seed = length;
        how.log_probabilities = true;
        prompts.push_back(model.encode(letters.substr(0, length)));
        options.push_back(how);
    }
    std::vector<GenerateResult> alone;
    for (std::size_t i = 0; i < prompts.size(); ++i)
        alone.push_back(
            model.generate(std::vector<std::vector<std::int32_t>>{prompts[i]}, options[i]).front());

    GenerationBatch batch = model.start_batch();
    std::vector<std::string> given(prompts.size());
    std::size_t added = 0, ended = 0;
    for (int step = 0; ended < prompts.size(); ++step) {
        REQUIRE(step < 500);
        if (step % 3 == 0 && added < prompts.size()) {
            CHECK(batch.add(prompts[added], options[added]) == added);
            ++added;
        }
        for (const GenerationBatch::Part& part : batch.step()) {
            if (part.piece) given.at(part.number) += part.piece->text;
            if (!part.ended) continue;
            ++ended;
            INFO(part.number);
            const GenerateResult result = batch.take(part.number);
            CHECK(result.tokens == alone[part.number].tokens);
            CHECK(result.log_probabilities == alone[part.number].log_probabilities);
            CHECK(given[part.number] == result.text);
        }
        CHECK(batch.running() <= 4);
    }
    CHECK(batch.running() + batch.waiting() == 0);
}

TEST_CASE("A text of a batch is taken, remembered, and ended by its model", "[language_model]") {
    const Folder folder;
    LanguageModel model(Context("cpu"), file_of_bytes(folder), {.batch = 2});
    GenerationBatch batch = model.start_batch();
    const std::vector<std::int32_t> prompt = model.encode("a long beginning, that several share");
    GenerateOptions options{.length = 200};
    options.remember = true;
    for (int i = 0; i < 3; ++i) batch.add(prompt, options);
    CHECK((batch.running() == 0 && batch.waiting() == 3));
    batch.step();
    CHECK((batch.running() == 2 && batch.waiting() == 1));
    const GenerateResult first = batch.take(0);
    CHECK(first.end == GenerateResult::End::caller);
    CHECK(first.remembered_tokens == 0);
    CHECK(batch.take(2).prompt_tokens == std::ssize(prompt));  // it waited
    CHECK((batch.running() == 1 && batch.waiting() == 0));
    check_error(ErrorKind::invalid_argument, {"no text 2"}, [&] { batch.take(2); });
    check_error(ErrorKind::invalid_argument, {"is empty"}, [&] { batch.add({}); });
    // What another sequence has read of a prompt is copied.
    while (batch.running() > 0)
        for (const GenerationBatch::Part& part : batch.step())
            if (part.ended) batch.take(part.number);
    options.length = 3;
    for (std::size_t i = 3; i < 5; ++i) batch.add(prompt, options);
    for (int step = 0; step < 3; ++step) batch.step();
    for (std::size_t i = 3; i < 5; ++i) {
        const GenerateResult again = batch.take(i);
        CHECK(again.remembered_tokens == std::ssize(prompt) - 1);
        CHECK(again.end == GenerateResult::End::length);
    }
    model.forget();
    check_error(ErrorKind::invalid_argument, {"cannot go on"}, [&] { batch.step(); });
    check_error(ErrorKind::invalid_argument, {"cannot go on"}, [&] { batch.add(prompt); });
    GenerationBatch other = model.start_batch();
    batch = std::move(other);
    CHECK(batch.add(prompt) == 0);
}

TEST_CASE("A text ends where the caller says so", "[language_model]") {
    const Folder folder;
    LanguageModel model(Context("cpu"), file_of_bytes(folder));
    int calls = 0;
    const GenerateResult result =
        model.generate("hello", {.length = 50}, [&](std::string_view) { return ++calls < 3; });
    CHECK(calls == 3);
    CHECK(name_of(result.end) == "caller");
    CHECK_THROWS_AS(model.generate("hello", {.length = 50},
                                   [](std::string_view) -> bool { throw std::bad_alloc(); }),
                    std::bad_alloc);
    CHECK(model.generate("hello", {.length = 1}).tokens.size() == 1);
    check_error(ErrorKind::invalid_argument, {"0 tokens"},
                [&] { model.generate("hello", {.length = 0}); });
    check_error(ErrorKind::invalid_argument, {"stop text"},
                [&] { model.generate("hello", {.stop = {""}}); });
    LanguageModel other = std::move(model);
    check_error(ErrorKind::invalid_argument, {"moved from"}, [&] { model.forget(); });
    CHECK(other.vocabulary() == 257);
}
