// SPDX-License-Identifier: MIT
// LanguageModel through its public header, on the host: what is read, remembered and given out.
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "tiny_model.hpp"

#include <dlprim/language.hpp>

#include <algorithm>

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
