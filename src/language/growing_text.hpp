// SPDX-License-Identifier: MIT
// GrowingText: a text that is made of logits, one token at a time, and its figures.
#pragma once

#include "language/outgoing_text.hpp"
#include "language/sampler.hpp"
#include "language/tokenizer.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dlprim::language {

class GrowingText {
  public:
    using End = GenerateResult::End;

    /// The tokenizer must outlive the text. Time counts from here on, or from begin() on.
    GrowingText(const Tokenizer& tokenizer, const GenerateOptions& options,
                std::int64_t prompt_tokens)
        : tokenizer_(&tokenizer),
          sampler_(options),
          out_(options.stop),
          length_(options.length),
          start_(Clock::now()) {
        result_.prompt_tokens = prompt_tokens;
    }

    /// The prompt is read from now on, behind the first tokens of it that are remembered.
    void begin(std::int64_t remembered_tokens) {
        result_.remembered_tokens = remembered_tokens;
        start_ = Clock::now();
    }
    void set_prompt_read() { result_.prompt_seconds = seconds_since(start_); }
    /// Chooses a token by the logits behind the tokens `before`. Gives nothing if it ends the text
    /// and no text was kept back.
    std::optional<GeneratedPiece> add(std::span<const float> logits,
                                      std::span<const std::int32_t> before);
    /// Ends the text. Gives what was kept back, or nothing.
    std::optional<GeneratedPiece> last(End why) {
        end(why);
        GeneratedPiece piece;
        piece.text = out_.take(true);
        if (piece.text.empty()) return std::nullopt;
        return piece;
    }
    void end(End why) {
        ended_ = true;
        result_.end = why;
        if (!result_.tokens.empty()) result_.seconds = seconds_since(first_);
        result_.text = out_.text();
    }

    bool has_ended() const { return ended_; }
    bool is_full() const { return std::ssize(result_.tokens) == length_; }
    const GenerateResult& result() const { return result_; }

  private:
    using Clock = std::chrono::steady_clock;
    static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    const Tokenizer* tokenizer_;
    Sampler sampler_;
    OutgoingText out_;
    std::int64_t length_;
    Clock::time_point start_, first_ = start_;
    bool ended_ = false;
    GenerateResult result_;
};

inline std::optional<GeneratedPiece> GrowingText::add(std::span<const float> logits,
                                                      std::span<const std::int32_t> before) {
    std::vector<std::int32_t>& tokens = result_.tokens;
    Sampler::Choice choice = sampler_.choose(logits, before, tokens.size());
    if (tokens.empty()) {
        result_.first_token_seconds = seconds_since(start_);
        first_ = Clock::now();
    }
    if (tokenizer_->ends(choice.token)) return last(End::token);
    tokens.push_back(choice.token);
    GeneratedPiece piece{choice.token, {}, choice.log_probability, choice.alternatives};
    if (sampler_.gives_log_probabilities()) {
        result_.log_probabilities.push_back(choice.log_probability);
        result_.alternatives.push_back(std::move(choice.alternatives));
    }
    const bool stopped = out_.append(tokenizer_->bytes(choice.token));
    if (stopped) end(End::stop);
    piece.text = out_.take(stopped);
    result_.text = out_.text();
    result_.seconds = seconds_since(first_);
    return piece;
}

}  // namespace dlprim::language
