// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a tokenizer.json give a tokenizer, whose tokens are those
// of its table, or an Error. The first byte chooses a model of SentencePiece instead, or a
// vocab.txt.
#include "language/hugging_face_tokenizer.hpp"
#include "language/sentencepiece.hpp"
#include "language/tokenizer.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace dlprim::language;

namespace {

constexpr std::int64_t vocabulary = 100;

TokenizerTables parse(std::string_view bytes) {
    if (bytes.starts_with('v')) {
        // The first line is tokenizer_config.json.
        const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1);
        const dlprim::JsonDocument how(bytes.substr(1, end), "fuzz");
        return parse_vocabulary(bytes.substr(end + 1), how.root(), vocabulary);
    }
    if (!bytes.starts_with('m')) return parse_tokenizer(bytes, "fuzz", vocabulary);
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
        for (const std::int32_t token : tokenizer.encode("ab  <s> \u00c9\u4e00 1\n[SEP]"))
            if (token < 0 || token >= vocabulary) std::abort();
    } catch (const dlprim::Error&) {
    }
    return 0;
}
