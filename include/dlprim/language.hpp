// SPDX-License-Identifier: MIT
// LanguageModel: text from a language model in a file, on one device.
//
//   const dp::Context context("gpu");
//   dp::LanguageModel model(context, "model.gguf");
//   model.generate("The capital of France is", {.length = 20},
//                  [](std::string_view text) { std::cout << text << std::flush; return true; });
//
// docs/language.md says which files are read. Matrices of GGUF files stay in their blocks.
//
// Ownership: a model owns its weights on the device, and what it remembers of the text that it has
// read. It holds the file open, from which weights are read again for other sizes of a step.
//
// Threads: one thread at a time, for all nets and models of a context together
// (dlprim/context.hpp). Besides the thread that makes texts, one other may call encode(),
// encode_chat() and chat_prompt(), and any number may call decode() and what tells facts of the
// file.
//
// Waiting: reading and generating wait for the device. The first step of each size plans and
// compiles, which can take minutes where no cache has the kernels.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/language_convert.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct LanguageModelOptions {
    /// The most tokens that are remembered, at most what the model was made for. 0: that, or 8192
    /// if it is less. Memory is taken as texts need it.
    std::int64_t context = 0;
    /// How many tokens of a prompt are read at a time, from 1 to 4096.
    std::int64_t prompt_piece = 64;
    /// How many texts of a GenerationBatch are made at a time, from 1 to 256. Each takes memory for
    /// what it remembers, and a step that makes a token of each reads the weights once. A step has
    /// so many rows, even if fewer texts run: CPUs take longer for it then than for one text.
    std::int64_t batch = 1;
    /// Of operators (dlprim/precision.hpp). With fp16, keys and values of tokens are remembered as
    /// halves, too.
    Precision precision = Precision::fp32;
    /// The folder of an adapter (LoRA) that changes the model, as train_language_model() and the
    /// Python package peft write it; empty: none.
    std::string adapter = {};
    /// As NetOptions::progress.
    std::function<void(std::string_view what, int done, int total)> progress = {};
};

/// How the next token is chosen. The steps are Hugging Face's, in its order: repetition_penalty,
/// temperature, top_k, top_p, min_p. docs/language.md says what llama.cpp does differently.
struct GenerateOptions {
    std::int64_t length = 128;  ///< the most tokens that are made
    /// Of tokens that were read or made, positive logits are divided by it and negative ones
    /// multiplied. 1: none is changed.
    double repetition_penalty = 1;
    std::int64_t repetition_window = 0;  ///< of the last so many tokens alone; 0: all
    /// By which logits are divided. 0: always the likeliest token, and top_k, top_p, min_p and seed
    /// mean nothing.
    double temperature = 0;
    std::int64_t top_k = 0;  ///< only the likeliest so many tokens; 0: all
    /// Only the likeliest tokens that together have at least this probability.
    double top_p = 1;
    /// Only tokens at least this many times as likely as the likeliest one.
    double min_p = 0;
    std::uint64_t seed = 1;  ///< with the same one, a text is the same again
    /// Texts that end generation. They are not part of the result.
    std::vector<std::string> stop = {};
    /// Whether special tokens in the prompt, such as <|im_start|>, are tokens and not text.
    bool special = true;
    /// Whether tokens that the model remembers, and that the prompt begins with, are not read
    /// again. Pieces of other sizes round differently, so that a text can then differ from the one
    /// that is made of a whole prompt.
    bool remember = false;
    /// Whether results have the log-probabilities of tokens, and of how many of the likeliest ones
    /// in their place. They are the model's: of its logits, before all steps above.
    bool log_probabilities = false;
    std::int64_t alternatives = 0;
};

struct TokenProbability {
    std::int32_t token = -1;
    double log_probability = 0;  ///< natural
};

/// What Generation::next() gives.
struct GeneratedPiece {
    /// None in the last piece of a text, which is what was kept back until it was sure.
    std::optional<std::int32_t> token;
    std::string text;  ///< in whole characters; empty where the next token decides
    double log_probability = 0;
    std::vector<TokenProbability> alternatives;  ///< the likeliest first
};

struct GenerateResult {
    enum class End {
        length,   ///< as many tokens as asked for
        token,    ///< the model's token for the end of a text
        stop,     ///< one of GenerateOptions::stop
        context,  ///< no more tokens can be remembered
        caller,   ///< the function that gets the text returned false
    };
    std::string text;
    std::vector<std::int32_t> tokens;                         ///< without the token that ended it
    std::vector<double> log_probabilities;                    ///< of tokens, if asked for
    std::vector<std::vector<TokenProbability>> alternatives;  ///< to tokens, if asked for
    End end = End::length;
    std::int64_t prompt_tokens = 0;
    std::int64_t remembered_tokens = 0;  ///< of the prompt, which were not read again
    double prompt_seconds = 0;           ///< until the prompt was read
    double first_token_seconds = 0;      ///< until the first token was known, from the call on
    double seconds = 0;                  ///< from the first token to the last
};
/// "length", "token", ...
std::string_view name_of(GenerateResult::End end);

struct ChatMessage {
    std::string role;  ///< "system", "user", "assistant" or what the model's template knows besides
    std::string content;
};

struct ChatOptions {
    /// Whether the prompt ends where the assistant's answer begins.
    bool answer = true;
    /// A JSON object with further variables of the template, such as {"enable_thinking": false}.
    std::string variables = {};
};

/// Device memory in bytes.
struct LanguageModelMemory {
    std::uint64_t weights = 0;
    std::uint64_t per_token = 0;  ///< what is remembered of a token, of each text of a batch
    std::uint64_t step = 0;       ///< what a step takes besides
    std::uint64_t device = 0;     ///< what the device has
    /// The most tokens that fit, of context_length(). While the room for tokens grows, both the
    /// old and the new one are there, which this includes.
    std::int64_t longest_context = 0;
};

/// A text in the making. It keeps its model alive. While the model reads something else, starts
/// another text or forgets, this one ends: next() then throws Error(invalid_argument).
class Generation {
  public:
    ~Generation();
    Generation(Generation&&) noexcept;
    Generation& operator=(Generation&&) noexcept;

    /// Makes a token, and waits for the device. Returns nothing when the text has ended. Throws
    /// Error(numeric) where logits are not numbers.
    std::optional<GeneratedPiece> next();
    /// The text so far, and its figures. After next() has returned nothing, all of it.
    const GenerateResult& result() const;

  private:
    friend class LanguageModel;
    class Impl;
    explicit Generation(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Texts that are made side by side, LanguageModelOptions::batch at a time. Others may be added at
/// any time, which wait for a place. A text is the same bit for bit whatever others there are,
/// unless GenerateOptions::remember lets it begin with what another has read. The batch keeps its
/// model alive. While the model reads something else, starts another text or forgets, the batch
/// ends: add() and step() then throw Error(invalid_argument). As a model, it is used by one thread
/// at a time.
class GenerationBatch {
  public:
    ~GenerationBatch();
    GenerationBatch(GenerationBatch&&) noexcept;
    GenerationBatch& operator=(GenerationBatch&&) noexcept;

    /// Adds the text that follows a prompt, and returns its number; they count from 0. Throws as
    /// LanguageModel::start().
    std::size_t add(const std::vector<std::int32_t>& prompt, const GenerateOptions& options = {});

    /// What a step has made of a text.
    struct Part {
        std::size_t number = 0;
        std::optional<GeneratedPiece> piece;
        bool ended = false;  ///< whether it is the text's last part
    };
    /// Makes a token of each text that runs, and reads a piece of one prompt at most, so that texts
    /// do not wait long for others to begin. Waits for the device. What fails ends the texts that
    /// it concerns, and take() throws it.
    std::vector<Part> step();
    /// Returns a text with its figures, which the batch no longer has. One that has not ended ends
    /// (GenerateResult::End::caller), and its place is free. Throws Error(invalid_argument) if
    /// there is no such text, and what the text failed by, such as Error(numeric).
    GenerateResult take(std::size_t number);

    std::size_t running() const;  ///< texts that have a place
    std::size_t waiting() const;  ///< texts that wait for one

  private:
    friend class LanguageModel;
    class Impl;
    explicit GenerationBatch(std::unique_ptr<Impl> impl);
    Impl& impl() const;
    std::unique_ptr<Impl> impl_;
};

class LanguageModel {
  public:
    /// Reads the file's metadata and plans nothing. Throws Error(not_found), Error(io),
    /// Error(format) or Error(unsupported), which says what is wrong with the file or which
    /// architecture, type of tensor or tokenizer is not supported and which are, and
    /// Error(invalid_argument) for an adapter of another model.
    LanguageModel(const Context& context, const std::string& path,
                  const LanguageModelOptions& options = {});
    ~LanguageModel();
    LanguageModel(LanguageModel&&) noexcept;
    LanguageModel& operator=(LanguageModel&&) noexcept;

    const Context& context() const;
    std::string architecture() const;
    std::int64_t vocabulary() const;      ///< number of tokens
    std::int64_t context_length() const;  ///< the most tokens that are remembered

    /// The tokens of a text in UTF-8, with the one that begins texts if the model has it. Throws
    /// Error(invalid_argument) for text that is not UTF-8.
    std::vector<std::int32_t> encode(std::string_view text, bool special = true) const;
    /// The first of the tokens with which the model's texts end, or -1.
    std::int32_t end() const;
    /// The text of tokens. It is not whole UTF-8 where tokens end within a character.
    std::string decode(const std::vector<std::int32_t>& tokens) const;

    /// Reads tokens behind those that were read before, and returns the logits of the next one,
    /// vocabulary() of them. Throws Error(invalid_argument) for no tokens, for a number that is no
    /// token, and for more tokens than context_length() in all.
    std::vector<float> read(const std::vector<std::int32_t>& tokens);
    std::int64_t position() const;  ///< how many tokens are remembered
    /// Forgets all tokens but the first `tokens`. Throws Error(invalid_argument) for more than
    /// position().
    void forget(std::int64_t tokens = 0);

    /// The log-probability of each token but the first, behind those before it. Forgets all, and
    /// then reads one token after the other. Throws as read().
    std::vector<double> log_probabilities(const std::vector<std::int32_t>& tokens);

    /// Whether the file has a template for chats.
    bool has_chat_template() const;
    /// The prompt for a chat, as the template of the model's file writes it. Throws
    /// Error(not_found) if there is none, Error(format) for a template with an error, which names
    /// the line, and Error(invalid_argument) with its message for a chat that it does not take.
    std::string chat_prompt(const std::vector<ChatMessage>& messages,
                            const ChatOptions& options = {}) const;
    /// The tokens of this prompt. Names of control tokens in messages, such as <|im_end|>, are
    /// text, so that no message can end its turn and begin another.
    std::vector<std::int32_t> encode_chat(const std::vector<ChatMessage>& messages,
                                          const ChatOptions& options = {}) const;

    /// Forgets all but what GenerateOptions::remember keeps, reads the prompt's tokens, and returns
    /// the text that follows, of which next() makes a token at a time. Throws
    /// Error(invalid_argument) for an empty prompt, one that does not fit into context_length(),
    /// and options that make no sense, and Error(out_of_memory), which says how many tokens fit.
    Generation start(const std::vector<std::int32_t>& prompt, const GenerateOptions& options = {});
    /// The same in one call: `on_text` is called as by generate() below.
    GenerateResult generate(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                            const std::function<bool(std::string_view text)>& on_text = {});
    /// Forgets all, reads the prompt, and chooses tokens until one of the ends above. `on_text`
    /// gets the text as it is made, in whole characters; if it returns false, generation ends. If
    /// it throws, the exception arrives at the caller. Throws as start() and Generation::next().
    GenerateResult generate(std::string_view prompt, const GenerateOptions& options = {},
                            const std::function<bool(std::string_view text)>& on_text = {});

    /// Forgets all, and returns a batch without texts.
    GenerationBatch start_batch();
    /// The texts that follow several prompts, in their order, made in such a batch. `on_text` gets
    /// the number of a prompt, from 0, and its text as it is made; if it returns false, all texts
    /// end. All is forgotten before and afterwards. Throws as start(), for a prompt with its number
    /// from 1, and as GenerationBatch::take().
    std::vector<GenerateResult> generate(
        const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options,
        const std::function<bool(std::size_t number, std::string_view text)>& on_text = {});

    /// What the model takes, known before anything is read. Plans a step, without compiling.
    LanguageModelMemory memory() const;
    /// Device memory: the most that a step so far takes, with weights and what is remembered.
    std::uint64_t peak_bytes() const;

  private:
    friend class Generation;
    friend class GenerationBatch;
    class Impl;
    Impl& impl() const;
    std::shared_ptr<Impl> impl_;  ///< null when moved from
};

}  // namespace dlprim
