// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a tokenizer.json give a tokenizer, whose tokens are those
// of its table, or an Error. The first byte chooses a model of SentencePiece instead.
#include "language/hugging_face_tokenizer.hpp"
#include "language/sentencepiece.hpp"
#include "language/tokenizer.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace dlprim::language;

namespace {

constexpr std::int64_t vocabulary = 100;

TokenizerTables parse(std::string_view bytes) {
    if (bytes.empty() || bytes[0] != 'm') return parse_tokenizer(bytes, "fuzz", vocabulary);
    TokenizerTables tables = parse_sentencepiece(bytes.substr(1), "fuzz");
    tables.tokens.resize(vocabulary);
    tables.scores.resize(vocabulary);
    tables.kinds.resize(vocabulary, token_kind::unused);
    return tables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Tokenizer tokenizer(parse({reinterpret_cast<const char*>(data), size}), vocabulary,
                                  "fuzz");
        for (const std::int32_t token : tokenizer.encode("ab  <s> \u00e9\u4e00 1\n"))
            if (token < 0 || token >= vocabulary) std::abort();
    } catch (const dlprim::Error&) {
    }
    return 0;
}
