// SPDX-License-Identifier: MIT
// LanguageModel: file, tokenizer, session and sampler together.
#include <dlprim/language.hpp>

#include "base/text.hpp"
#include "language/sampler.hpp"
#include "language/session.hpp"
#include "language/tokenizer.hpp"

#include <algorithm>
#include <chrono>

namespace dlprim {

using language::ModelFile;
using language::ModelSizes;
using language::Sampler;
using language::Session;
using language::Tokenizer;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::int64_t default_context = 8192;

language::SessionOptions session_options(const LanguageModelOptions& options,
                                         const ModelSizes& sizes) {
    language::SessionOptions how;
    how.context = options.context > 0 ? options.context : std::min(sizes.context, default_context);
    how.piece = options.prompt_piece;
    how.net.precision = options.precision;
    how.net.progress = options.progress;
    return how;
}

/// The text that was made, and how much of it the caller has. What may become a stop text, or is no
/// whole character yet, is kept back.
class Outgoing {
  public:
    Outgoing(const std::vector<std::string>& stop,
             const std::function<bool(std::string_view)>& on_text)
        : stop_(stop), on_text_(on_text) {}

    /// Appends bytes. Returns whether a stop text ended the text, which is cut off before it.
    bool append(std::string_view bytes) {
        std::size_t longest = 0;
        for (const std::string& stop : stop_) longest = std::max(longest, stop.size());
        const std::size_t from = text_.size() - std::min(text_.size(), longest);
        text_ += bytes;
        std::size_t end = std::string::npos;
        for (const std::string& stop : stop_) end = std::min(end, text_.find(stop, from));
        if (end == std::string::npos) return false;
        text_.resize(std::max(end, given_));
        return true;
    }
    /// Gives the caller what is sure; all of it if it is the `last`. Returns whether to go on.
    bool give(bool last) {
        std::size_t end = text_.size();
        if (!last) end -= std::max(language::unfinished(text_), beginning_of_stop());
        if (end <= given_) return true;
        const std::string_view part = std::string_view(text_).substr(given_, end - given_);
        given_ = end;
        return !on_text_ || on_text_(part);
    }
    std::string text() && { return std::move(text_); }

  private:
    /// How many bytes at the end may be the first ones of a stop text.
    std::size_t beginning_of_stop() const {
        std::size_t most = 0;
        for (const std::string& stop : stop_)
            for (std::size_t count = std::min(stop.size() - 1, text_.size()); count > most; --count)
                if (text_.ends_with(std::string_view(stop).substr(0, count))) most = count;
        return most;
    }

    const std::vector<std::string>& stop_;
    const std::function<bool(std::string_view)>& on_text_;
    std::string text_;
    std::size_t given_ = 0;
};

}  // namespace

class LanguageModel::Impl {
  public:
    Impl(const Context& device, const std::string& path, const LanguageModelOptions& options)
        : file(language::open_model(path)),
          sizes(file->sizes()),
          tokenizer(file->tokenizer(), sizes.vocabulary, path),
          how(session_options(options, sizes)),
          session(device, file, sizes, how),
          context(device) {}

    GenerateResult generate(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                            const std::function<bool(std::string_view)>& on_text);

    const std::shared_ptr<const ModelFile> file;
    const ModelSizes sizes;
    const Tokenizer tokenizer;
    const language::SessionOptions how;
    Session session;
    const Context context;
};

GenerateResult LanguageModel::Impl::generate(const std::vector<std::int32_t>& prompt,
                                             const GenerateOptions& options,
                                             const std::function<bool(std::string_view)>& on_text) {
    using End = GenerateResult::End;
    const Clock::time_point start = Clock::now();
    Sampler sampler(options);
    Outgoing out(options.stop, on_text);
    GenerateResult result;
    result.prompt_tokens = std::ssize(prompt);
    session.forget_from(0);
    session.reserve(std::min(result.prompt_tokens + options.length, how.context));
    std::vector<float> logits = session.read(prompt);
    result.prompt_seconds = seconds_since(start);
    Clock::time_point first = start;
    while (std::ssize(result.tokens) < options.length) {
        const std::int32_t token = sampler.choose(logits, result.tokens.size());
        if (result.tokens.empty()) {
            result.first_token_seconds = seconds_since(start);
            first = Clock::now();
        }
        if (tokenizer.ends(token)) {
            result.end = End::token;
            break;
        }
        result.tokens.push_back(token);
        if (out.append(tokenizer.bytes(token))) {
            result.end = End::stop;
            break;
        }
        if (!out.give(false)) {
            result.end = End::caller;
            break;
        }
        if (std::ssize(result.tokens) == options.length) break;
        if (session.past() == how.context) {
            result.end = End::context;
            break;
        }
        logits = session.read(std::span(&token, 1));
    }
    result.seconds = seconds_since(first);
    if (result.end != End::caller) out.give(true);
    result.text = std::move(out).text();
    return result;
}

std::string_view name_of(GenerateResult::End end) {
    constexpr std::string_view names[] = {"length", "token", "stop", "context", "caller"};
    return names[static_cast<std::size_t>(end)];
}

LanguageModel::LanguageModel(const Context& context, const std::string& path,
                             const LanguageModelOptions& options)
    : impl_(std::make_unique<Impl>(context, path, options)) {}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

LanguageModel::Impl& LanguageModel::impl() const {
    require(impl_ != nullptr,
            "this LanguageModel was moved from: use the one that it was moved to");
    return *impl_;
}

const Context& LanguageModel::context() const {
    return impl().context;
}

std::string LanguageModel::architecture() const {
    return impl().file->architecture();
}

std::int64_t LanguageModel::vocabulary() const {
    return impl().sizes.vocabulary;
}

std::int64_t LanguageModel::context_length() const {
    return impl().how.context;
}

std::vector<std::int32_t> LanguageModel::encode(std::string_view text, bool special) const {
    std::vector<std::int32_t> tokens = impl().tokenizer.encode(text, special);
    if (impl().tokenizer.begin() >= 0) tokens.insert(tokens.begin(), impl().tokenizer.begin());
    return tokens;
}

std::string LanguageModel::decode(const std::vector<std::int32_t>& tokens) const {
    std::string text;
    for (const std::int32_t token : tokens) text += impl().tokenizer.bytes(token);
    return text;
}

std::vector<float> LanguageModel::read(const std::vector<std::int32_t>& tokens) {
    return impl().session.read(tokens);
}

std::int64_t LanguageModel::position() const {
    return impl().session.past();
}

void LanguageModel::forget(std::int64_t tokens) {
    impl().session.forget_from(tokens);
}

GenerateResult LanguageModel::generate(std::string_view prompt, const GenerateOptions& options,
                                       const std::function<bool(std::string_view)>& on_text) {
    require(options.length >= 1, "a text of ", options.length, " tokens was asked for");
    for (const std::string& stop : options.stop) require(!stop.empty(), "a stop text is empty");
    const std::vector<std::int32_t> tokens = encode(prompt, options.special);
    require(!tokens.empty(), "the prompt is empty");
    require(std::ssize(tokens) <= context_length(), "the prompt has ", tokens.size(),
            " tokens, and at most ", context_length(), " are remembered");
    return impl().generate(tokens, options, on_text);
}

std::uint64_t LanguageModel::peak_bytes() const {
    return impl().session.peak_bytes();
}

}  // namespace dlprim
