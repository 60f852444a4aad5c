// SPDX-License-Identifier: MIT
// LanguageModel: file, tokenizer, session and sampler together.
#include <dlprim/language.hpp>

#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "language/adapter.hpp"
#include "language/batch.hpp"
#include "language/chat_template.hpp"
#include "language/growing_text.hpp"
#include "language/network.hpp"
#include "language/session.hpp"
#include "language/tokenizer.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace dlprim {

using language::ModelFile;
using language::ModelSizes;
using language::Session;
using language::Tokenizer;

namespace {

constexpr std::int64_t default_context = 8192;

/// Throws if the model makes no text, before its tokenizer is read.
std::shared_ptr<const ModelFile> open_decoder(const std::string& path, const std::string& adapter) {
    std::shared_ptr<const ModelFile> file = language::open_adapted(path, adapter);
    language::find_decoder(*file);
    return file;
}

language::SessionOptions session_options(const LanguageModelOptions& options,
                                         const ModelSizes& sizes) {
    language::SessionOptions how;
    how.context = options.context > 0 ? options.context : std::min(sizes.context, default_context);
    how.piece = options.prompt_piece;
    how.net.precision = options.precision;
    how.half_cache = options.precision == Precision::fp16;
    how.net.progress = options.progress;
    constexpr std::int64_t most = 256;
    require(options.batch >= 1 && options.batch <= most, "a batch has 1 to ", most, " texts, not ",
            options.batch);
    how.sequences = options.batch;
    return how;
}

void check(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
           std::int64_t context) {
    require(options.length >= 1, "a text of ", options.length, " tokens was asked for");
    for (const std::string& stop : options.stop) require(!stop.empty(), "a stop text is empty");
    require(!prompt.empty(), "the prompt is empty");
    require(std::ssize(prompt) <= context, "the prompt has ", prompt.size(),
            " tokens, and at most ", context, " are remembered");
}

/// A character that Unicode has for no text. It cuts the names of control tokens in messages.
constexpr std::string_view cut = "\uFDD0";

/// The length of the character that a text in UTF-8 begins with.
std::size_t first_character(std::string_view text) {
    std::size_t length = 1;
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
        ++length;
    return length;
}

std::tm local_time() {
    const std::time_t now = std::time(nullptr);
    std::tm result{};
    localtime_r(&now, &result);
    return result;
}

}  // namespace

class LanguageModel::Impl {
  public:
    Impl(const Context& device, const std::string& path, const LanguageModelOptions& options)
        : Impl(device, open_decoder(path, options.adapter), options) {}

    /// Reads tokens behind those that are remembered.
    /// The logits last until the next call.
    std::span<const float> read(std::span<const std::int32_t> tokens) {
        try {
            const std::span<const float> logits = session.read(tokens);
            remembered.insert(remembered.end(), tokens.begin(), tokens.end());
            return logits;
        } catch (...) {  // some of them may have been read
            session.forget_from(std::ssize(remembered));
            throw;
        }
    }
    void forget(std::int64_t tokens) {
        session.forget_from(tokens);
        remembered.resize(static_cast<std::size_t>(tokens));
    }
    /// Forgets all tokens but those that the prompt begins with, and of these the last one if the
    /// prompt has no other, since the logits behind it are wanted. Returns how many are kept.
    std::int64_t forget_but(std::span<const std::int32_t> prompt) {
        const auto most = std::min(remembered.size(), prompt.size() - 1);
        std::size_t same = 0;
        while (same < most && remembered[same] == prompt[same]) ++same;
        forget(static_cast<std::int64_t>(same));
        return static_cast<std::int64_t>(same);
    }

    LanguageModelMemory memory();
    /// Throws Error(out_of_memory) if so many tokens do not fit.
    void require_memory(std::int64_t tokens);
    const language::ChatTemplate& chat_template();
    /// The message, with the names of control tokens cut by a character that no text has.
    std::string cut_names(std::string text) const;

    const std::shared_ptr<const ModelFile> file;
    const ModelSizes sizes;
    const language::TokenizerTables tables;
    const Tokenizer tokenizer;
    const language::SessionOptions how;
    Session session;
    const Context context;
    std::vector<std::int32_t> remembered;  ///< tokens that were read
    std::uint64_t texts = 0;               ///< how often something else was begun to be read

  private:
    Impl(const Context& device, std::shared_ptr<const ModelFile> opened,
         const LanguageModelOptions& options)
        : file(std::move(opened)),
          sizes(file->sizes()),
          tables(file->tokenizer()),
          tokenizer(tables, sizes.vocabulary, file->path()),
          how(session_options(options, sizes)),
          session(device, file, sizes, how),
          context(device) {
        constexpr std::int64_t control = 3;  // as GGUF has it
        for (std::size_t i = 0; i < std::min(tables.kinds.size(), tables.tokens.size()); ++i)
            if (tables.kinds[i] == control && tables.tokens[i].size() > 1)
                control_names_.push_back(tables.tokens[i]);
    }

    std::vector<std::string> control_names_;
    std::optional<language::ChatTemplate> chat_template_;
    std::optional<LanguageModelMemory> memory_;
    std::int64_t checked_tokens_ = 0;
};

LanguageModelMemory LanguageModel::Impl::memory() {
    if (memory_) return *memory_;
    LanguageModelMemory made;
    for (const auto& [name, param] : Access::impl(session.net()).params())
        made.weights += static_cast<std::uint64_t>(param.value.spec.shape.numel()) *
                        size_of(param.value.spec.dtype);
    made.per_token =
        static_cast<std::uint64_t>(2 * sizes.layers * sizes.key_heads * sizes.head_size) *
        static_cast<std::uint64_t>(how.sequences) *
        size_of(how.half_cache ? DType::f16 : DType::f32);
    const MemoryMap map = session.net().plan_memory();
    const std::uint64_t peak = std::max(map.peak_bytes, map.setup_peak_bytes);
    made.step = peak - std::min(peak, made.weights);
    made.device = map.limit_bytes;
    const std::uint64_t fixed = made.weights + made.step;
    const std::uint64_t left = made.device - std::min(fixed, made.device);
    made.longest_context =
        std::min(how.context, static_cast<std::int64_t>(left / 3 * 2 / made.per_token));
    memory_ = made;
    return made;
}

void LanguageModel::Impl::require_memory(std::int64_t tokens) {
    if (tokens <= checked_tokens_) return;
    const LanguageModelMemory need = memory();
    const auto mib = [](std::uint64_t bytes) { return cat(bytes >> 20, " MiB"); };
    if (need.device > 0 && tokens > need.longest_context)
        fail(ErrorKind::out_of_memory, "'", file->path(), "' takes ", mib(need.weights),
             " of weights, and ", tokens, " tokens take ",
             mib(static_cast<std::uint64_t>(tokens) * need.per_token), "; device ",
             context.info().str(), " has ", mib(need.device), ", in which ",
             need.longest_context > 0 ? cat("about ", need.longest_context, " tokens fit")
                                      : std::string("the weights alone do not fit"));
    checked_tokens_ = tokens;
}

const language::ChatTemplate& LanguageModel::Impl::chat_template() {
    if (chat_template_) return *chat_template_;
    const std::optional<std::string> text = file->chat_template();
    if (!text)
        fail(ErrorKind::not_found, "'", file->path(),
             "' has no chat template: write the prompt as the model expects it");
    const auto name = [&](const std::optional<std::int64_t>& token) {
        return token && *token >= 0 && *token < std::ssize(tables.tokens)
                   ? tables.tokens[static_cast<std::size_t>(*token)]
                   : std::string();
    };
    std::optional<std::int64_t> end;
    if (!tables.ends.empty()) end = tables.ends.front();
    return chat_template_.emplace(*text, file->path(), name(tables.begin), name(end));
}

std::string LanguageModel::Impl::cut_names(std::string text) const {
    for (const std::string& name : control_names_)
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
            text.insert(at + first_character(name), cut);
    return text;
}

class Generation::Impl {
  public:
    using End = GenerateResult::End;

    Impl(std::shared_ptr<LanguageModel::Impl> model, const std::vector<std::int32_t>& prompt,
         const GenerateOptions& options)
        : model_(std::move(model)), text_(model_->tokenizer, options, std::ssize(prompt)) {
        const std::int64_t all = std::min(std::ssize(prompt) + options.length, model_->how.context);
        model_->require_memory(all);
        number_ = ++model_->texts;
        std::int64_t remembered = 0;
        if (options.remember)
            remembered = model_->forget_but(prompt);
        else
            model_->forget(0);
        model_->session.reserve(all);
        text_.begin(remembered);
        logits_ = model_->read(std::span(prompt).subspan(static_cast<std::size_t>(remembered)));
        text_.set_prompt_read();
    }

    std::optional<GeneratedPiece> next() {
        if (text_.has_ended()) return std::nullopt;
        require(model_->texts == number_,
                "this text cannot go on: its model has begun to read something else");
        if (text_.is_full()) return text_.last(End::length);
        if (logits_.empty()) {
            if (model_->session.past() == model_->how.context) return text_.last(End::context);
            logits_ = model_->read(std::span(text_.result().tokens).last(1));
        }
        return text_.add(std::exchange(logits_, {}), model_->remembered);
    }
    const GenerateResult& result() const { return text_.result(); }
    void end(End why) { text_.end(why); }

  private:
    std::shared_ptr<LanguageModel::Impl> model_;
    language::GrowingText text_;
    std::uint64_t number_ = 0;  ///< of the text among those of its model
    /// Of the next token; empty if its predecessor is not read yet.
    std::span<const float> logits_;
};

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

std::optional<GeneratedPiece> Generation::next() {
    require(impl_ != nullptr, "this Generation was moved from");
    return impl_->next();
}

const GenerateResult& Generation::result() const {
    require(impl_ != nullptr, "this Generation was moved from");
    return impl_->result();
}

class GenerationBatch::Impl {
  public:
    explicit Impl(std::shared_ptr<LanguageModel::Impl> model)
        : model_(std::move(model)),
          batch_(model_->session, model_->tokenizer, model_->how.context),
          number_(++model_->texts) {
        model_->remembered.clear();
    }
    ~Impl() {
        if (model_->texts == number_) batch_.forget();
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    std::size_t add(const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
        check_model();
        check(prompt, options, model_->how.context);
        model_->require_memory(std::min(std::ssize(prompt) + options.length, model_->how.context));
        return batch_.add(prompt, options);
    }
    std::vector<Part> step() {
        check_model();
        return batch_.step();
    }
    language::Batch& batch() { return batch_; }

  private:
    void check_model() const {
        require(model_->texts == number_,
                "this batch cannot go on: its model has begun to read something else");
    }

    std::shared_ptr<LanguageModel::Impl> model_;
    language::Batch batch_;
    std::uint64_t number_;  ///< among the texts of its model
};

GenerationBatch::GenerationBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GenerationBatch::~GenerationBatch() = default;
GenerationBatch::GenerationBatch(GenerationBatch&&) noexcept = default;
GenerationBatch& GenerationBatch::operator=(GenerationBatch&&) noexcept = default;

GenerationBatch::Impl& GenerationBatch::impl() const {
    require(impl_ != nullptr, "this GenerationBatch was moved from");
    return *impl_;
}

std::size_t GenerationBatch::add(const std::vector<std::int32_t>& prompt,
                                 const GenerateOptions& options) {
    return impl().add(prompt, options);
}

std::vector<GenerationBatch::Part> GenerationBatch::step() {
    return impl().step();
}

GenerateResult GenerationBatch::take(std::size_t number) {
    return impl().batch().take(number);
}

std::size_t GenerationBatch::running() const {
    return impl().batch().running();
}

std::size_t GenerationBatch::waiting() const {
    return impl().batch().waiting();
}

std::string_view name_of(GenerateResult::End end) {
    constexpr std::string_view names[] = {"length", "token", "stop", "context", "caller"};
    return names[static_cast<std::size_t>(end)];
}

LanguageModel::LanguageModel(const Context& context, const std::string& path,
                             const LanguageModelOptions& options)
    : impl_(std::make_shared<Impl>(context, path, options)) {}
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

std::int32_t LanguageModel::end() const {
    const std::vector<std::int64_t>& ends = impl().tables.ends;
    return ends.empty() ? -1 : static_cast<std::int32_t>(ends.front());
}

std::string LanguageModel::decode(const std::vector<std::int32_t>& tokens) const {
    std::string text;
    for (const std::int32_t token : tokens) text += impl().tokenizer.bytes(token);
    return text;
}

std::vector<float> LanguageModel::read(const std::vector<std::int32_t>& tokens) {
    ++impl().texts;
    const std::span<const float> logits = impl().read(tokens);
    return {logits.begin(), logits.end()};
}

std::int64_t LanguageModel::position() const {
    return impl().session.past();
}

void LanguageModel::forget(std::int64_t tokens) {
    ++impl().texts;
    impl().forget(tokens);
}

std::vector<double> LanguageModel::log_probabilities(const std::vector<std::int32_t>& tokens) {
    require(!tokens.empty(), "there are no tokens whose probabilities could be told");
    forget();
    std::vector<double> result;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const std::int32_t next = tokens[i + 1];
        require(next >= 0 && next < vocabulary(), "token ", next, " is none of the vocabulary of ",
                vocabulary());
        const std::span<const float> logits = impl().read(std::span(tokens).subspan(i, 1));
        result.push_back(logits[static_cast<std::size_t>(next)] - language::log_sum(logits));
    }
    return result;
}

bool LanguageModel::has_chat_template() const {
    return impl().file->chat_template().has_value();
}

std::string LanguageModel::chat_prompt(const std::vector<ChatMessage>& messages,
                                       const ChatOptions& options) const {
    return impl().chat_template().render(messages, options, local_time());
}

std::vector<std::int32_t> LanguageModel::encode_chat(const std::vector<ChatMessage>& messages,
                                                     const ChatOptions& options) const {
    std::vector<ChatMessage> cut_messages = messages;
    for (ChatMessage& message : cut_messages)
        message.content = impl().cut_names(std::move(message.content));
    const std::string prompt = chat_prompt(cut_messages, options);
    std::vector<std::int32_t> tokens;
    for (std::size_t at = 0; at <= prompt.size();) {
        const std::size_t end = std::min(prompt.find(cut, at), prompt.size());
        const std::vector<std::int32_t> part =
            impl().tokenizer.encode(std::string_view(prompt).substr(at, end - at));
        tokens.insert(tokens.end(), part.begin(), part.end());
        at = end + cut.size();
    }
    return tokens;
}

Generation LanguageModel::start(const std::vector<std::int32_t>& prompt,
                                const GenerateOptions& options) {
    check(prompt, options, context_length());
    return Generation(std::make_unique<Generation::Impl>(impl_, prompt, options));
}

GenerateResult LanguageModel::generate(const std::vector<std::int32_t>& prompt,
                                       const GenerateOptions& options,
                                       const std::function<bool(std::string_view)>& on_text) {
    Generation text = start(prompt, options);
    while (const std::optional<GeneratedPiece> piece = text.next()) {
        if (!on_text || piece->text.empty() || on_text(piece->text)) continue;
        text.impl_->end(GenerateResult::End::caller);
        break;
    }
    return text.result();
}

GenerateResult LanguageModel::generate(std::string_view prompt, const GenerateOptions& options,
                                       const std::function<bool(std::string_view text)>& on_text) {
    return generate(encode(prompt, options.special), options, on_text);
}

GenerationBatch LanguageModel::start_batch() {
    impl();
    return GenerationBatch(std::make_unique<GenerationBatch::Impl>(impl_));
}

std::vector<GenerateResult> LanguageModel::generate(
    const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options,
    const std::function<bool(std::size_t, std::string_view)>& on_text) {
    GenerationBatch batch = start_batch();
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        try {
            batch.add(prompts[i], options);
        } catch (const Error& error) {
            throw Error(error.kind(), cat("prompt ", i + 1, ": ", error.what()));
        }
        longest = std::max(longest, std::ssize(prompts[i]));
    }
    impl().session.reserve(std::min(longest + options.length, context_length()));
    std::vector<GenerateResult> results(prompts.size());
    std::vector<char> taken(prompts.size(), 0);
    const auto take = [&](std::size_t number) {
        results[number] = batch.take(number);
        taken[number] = 1;
    };
    for (bool goes_on = true; goes_on && batch.running() + batch.waiting() > 0;)
        for (const GenerationBatch::Part& part : batch.step()) {
            if (goes_on && on_text && part.piece && !part.piece->text.empty())
                goes_on = on_text(part.number, part.piece->text);
            if (part.ended) take(part.number);
        }
    for (std::size_t i = 0; i < prompts.size(); ++i)
        if (taken[i] == 0) take(i);
    return results;
}

LanguageModelMemory LanguageModel::memory() const {
    return impl().memory();
}

std::uint64_t LanguageModel::peak_bytes() const {
    return impl().session.peak_bytes();
}

}  // namespace dlprim
