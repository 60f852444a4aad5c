// SPDX-License-Identifier: MIT
// LanguageModel: text from a language model in a file, on one device.
//
//   const dp::Context context("gpu");
//   dp::LanguageModel model(context, "model.gguf");
//   model.generate("The capital of France is", {.length = 20},
//                  [](std::string_view text) { std::cout << text << std::flush; return true; });
//
// docs/language.md says which files are read. Weights are unpacked to float.
//
// Ownership: a model owns its weights on the device, and what it remembers of the text that it has
// read. It holds the file open, from which weights are read again for other sizes of a step.
//
// Threads: one thread at a time, for all nets and models of a context together
// (dlprim/context.hpp).
//
// Waiting: reading and generating wait for the device. The first step of each size plans and
// compiles, which can take minutes where no cache has the kernels.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>

#include <cstdint>
#include <functional>
#include <memory>
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
    /// Of operators (dlprim/precision.hpp).
    Precision precision = Precision::fp32;
    /// As NetOptions::progress.
    std::function<void(std::string_view what, int done, int total)> progress = {};
};

/// How the next token is chosen. Temperature comes first, then top_k, then top_p, as in Hugging
/// Face's generate().
struct GenerateOptions {
    std::int64_t length = 128;  ///< the most tokens that are made
    /// By which logits are divided. 0: always the likeliest token, and the options below mean
    /// nothing.
    double temperature = 0;
    std::int64_t top_k = 0;  ///< only the likeliest so many tokens; 0: all
    /// Only the likeliest tokens that together have at least this probability.
    double top_p = 1;
    std::uint64_t seed = 1;  ///< with the same one, a text is the same again
    /// Texts that end generation. They are not part of the result.
    std::vector<std::string> stop = {};
    /// Whether special tokens in the prompt, such as <|im_start|>, are tokens and not text.
    bool special = true;
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
    std::vector<std::int32_t> tokens;  ///< without the token that ended it
    End end = End::length;
    std::int64_t prompt_tokens = 0;
    double prompt_seconds = 0;       ///< until the prompt was read
    double first_token_seconds = 0;  ///< until the first token was known, from the call on
    double seconds = 0;              ///< from the first token to the last
};
/// "length", "token", ...
std::string_view name_of(GenerateResult::End end);

class LanguageModel {
  public:
    /// Reads the file's metadata and plans nothing. Throws Error(not_found), Error(io),
    /// Error(format) or Error(unsupported), which says what is wrong with the file or which
    /// architecture, type of tensor or tokenizer is not supported and which are.
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

    /// Forgets all, reads the prompt, and chooses tokens until one of the ends above. `on_text`
    /// gets the text as it is made, in whole characters; if it returns false, generation ends. If
    /// it throws, the exception arrives at the caller. Throws Error(invalid_argument) for an empty
    /// prompt, one that does not fit into context_length(), and options that make no sense, and
    /// Error(numeric) where logits are not numbers.
    GenerateResult generate(std::string_view prompt, const GenerateOptions& options = {},
                            const std::function<bool(std::string_view text)>& on_text = {});

    /// Device memory: the most that a step so far takes, with weights and what is remembered.
    std::uint64_t peak_bytes() const;

  private:
    class Impl;
    Impl& impl() const;
    std::unique_ptr<Impl> impl_;  ///< null when moved from
};

}  // namespace dlprim
