// SPDX-License-Identifier: MIT
// The regular expressions of tokenizers, and their use by ICU.
#include "language/splitter.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>

#if DLPRIM_WITH_ICU
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uregex.h>
#include <unicode/utext.h>
#endif

namespace dlprim::language {

namespace {

/// Each expression cuts the pieces of those before it; what none of its matches covers is a piece,
/// too. White space is Unicode's, which ICU's \s is not.
struct Kind {
    std::vector<std::string_view> names;
    std::vector<std::string> patterns;
    bool whole_pieces = false;
};

constexpr const char* gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+)"
    R"(|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";
constexpr const char* digit = R"(\p{N})";
constexpr const char* llama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                               R"(| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+)"
                               R"(|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";
constexpr const char* qwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                              R"(| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+)"
                              R"(|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {{"gpt-2", "gpt2", "olmo", "jais", "mpt", "phi-2"}, {gpt2}},
        {{"smollm", "starcoder", "refact", "command-r", "codeshell"}, {digit, gpt2}},
        {{"llama-bpe", "llama3", "llama-v3", "falcon3"}, {llama3}, true},
        {{"qwen2", "deepseek-r1-qwen"}, {qwen2}},
    };
    return all;
}

const Kind& find_kind(const std::string& name) {
    std::vector<std::string> known;
    for (const Kind& kind : kinds()) {
        if (std::find(kind.names.begin(), kind.names.end(), name) != kind.names.end()) return kind;
        known.insert(known.end(), kind.names.begin(), kind.names.end());
    }
    std::sort(known.begin(), known.end());
    fail(ErrorKind::unsupported, "tokenizers that split text as '", name,
         "' does are not supported; supported are ", join(known, ", "));
}

}  // namespace

std::string name_of_splitter(const std::vector<std::string>& patterns, bool whole_pieces) {
    for (const Kind& kind : kinds())
        if (kind.patterns == patterns && kind.whole_pieces == whole_pieces)
            return std::string(kind.names[0]);
    fail(ErrorKind::unsupported,
         "the way in which this model's tokenizer splits text has no name in GGUF files");
}

const std::vector<std::string>& patterns_of_splitter(const std::string& name) {
    return find_kind(name).patterns;
}

bool takes_whole_pieces(const std::string& name) {
    return find_kind(name).whole_pieces;
}

std::string_view gpt2_pattern() {
    return gpt2;
}

#if DLPRIM_WITH_ICU

namespace {

void check(UErrorCode status, std::string_view what) {
    if (U_FAILURE(status))
        fail(ErrorKind::unsupported, "ICU cannot ", what, ": ", u_errorName(status));
}

struct Closer {
    void operator()(URegularExpression* expression) const { uregex_close(expression); }
    void operator()(UText* text) const { utext_close(text); }
};

std::unique_ptr<UText, Closer> open_text(std::string_view text, UErrorCode& status) {
    return std::unique_ptr<UText, Closer>(
        utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status));
}

std::unique_ptr<URegularExpression, Closer> compile(std::string_view pattern) {
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<UText, Closer> text = open_text(pattern, status);
    std::unique_ptr<URegularExpression, Closer> made(
        uregex_openUText(text.get(), 0, nullptr, &status));
    // A model's file may have any expression. The limit is in steps of some thousand states.
    constexpr std::int32_t most_steps = 2000;
    uregex_setTimeLimit(made.get(), most_steps, &status);
    check(status, "compile the tokenizer's regular expression");
    return made;
}

}  // namespace

struct Splitter::Impl {
    bool whole_pieces;
    std::vector<std::unique_ptr<URegularExpression, Closer>> expressions;

    /// Appends the matches in `piece` and what lies between them.
    static void cut(URegularExpression* expression, std::string_view piece,
                    std::vector<std::string_view>& to) {
        UErrorCode status = U_ZERO_ERROR;
        const std::unique_ptr<UText, Closer> text = open_text(piece, status);
        uregex_setUText(expression, text.get(), &status);
        std::size_t done = 0;
        const auto append = [&](std::size_t end) {
            if (end > done) to.push_back(piece.substr(done, end - done));
            done = end;
        };
        while (uregex_findNext(expression, &status)) {
            append(static_cast<std::size_t>(uregex_start64(expression, 0, &status)));
            append(static_cast<std::size_t>(uregex_end64(expression, 0, &status)));
        }
        append(piece.size());
        check(status, "split the text");
    }
};

Splitter::Splitter(std::vector<std::string> patterns, bool whole_pieces)
    : impl_(new Impl{whole_pieces, {}}) {
    for (const std::string& pattern : patterns) impl_->expressions.push_back(compile(pattern));
}

std::string composed(std::string_view text) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
    check(status, "compose characters");
    std::string made;
    icu::StringByteSink<std::string> sink(&made);
    nfc->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                       sink, nullptr, status);
    check(status, "compose characters");
    return made;
}

std::vector<std::string_view> Splitter::split(std::string_view text) const {
    std::vector<std::string_view> pieces{text}, smaller;
    for (const auto& expression : impl_->expressions) {
        smaller.clear();
        for (const std::string_view piece : pieces) Impl::cut(expression.get(), piece, smaller);
        pieces.swap(smaller);
    }
    return pieces;
}

#else

namespace {

[[noreturn]] void fail_without_icu() {
    fail(ErrorKind::unsupported,
         "this library was built without ICU, by which byte-level tokenizers split text: build it "
         "with Debian's libicu-dev");
}

}  // namespace

struct Splitter::Impl {
    bool whole_pieces;
};

Splitter::Splitter(std::vector<std::string> patterns, bool whole_pieces)
    : impl_(new Impl{whole_pieces}) {
    if (!patterns.empty()) fail_without_icu();
}

std::vector<std::string_view> Splitter::split(std::string_view text) const {
    return {text};
}

std::string composed(std::string_view) {
    fail_without_icu();
}

#endif

Splitter::Splitter(const std::string& name)
    : Splitter(find_kind(name).patterns, find_kind(name).whole_pieces) {}
Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;

bool Splitter::takes_whole_pieces() const {
    return impl_->whole_pieces;
}

}  // namespace dlprim::language
