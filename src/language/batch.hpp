// SPDX-License-Identifier: MIT
// Batch: texts of several prompts, of which as many are made at a time as a session has sequences.
// A step reads a token of each of them. When a text ends, the next prompt takes its sequence.
#pragma once

#include "language/growing_text.hpp"
#include "language/session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language {

class Batch {
  public:
    using Prompts = std::vector<std::vector<std::int32_t>>;
    /// Gets texts as they are made, by the number of the prompt; all end where it returns false.
    using OnText = std::function<bool(std::size_t number, std::string_view text)>;

    /// All must outlive the batch. `context` is the most tokens that a sequence takes.
    Batch(Session& session, const Tokenizer& tokenizer, const GenerateOptions& options,
          std::int64_t context, const Prompts& prompts, OnText on_text)
        : session_(session),
          tokenizer_(tokenizer),
          options_(options),
          context_(context),
          prompts_(prompts),
          on_text_(std::move(on_text)),
          results_(prompts.size()),
          running_(static_cast<std::size_t>(session.sequences())) {}
    ~Batch() { forget(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    /// The texts in the order of prompts. The session remembers nothing afterwards.
    std::vector<GenerateResult> run();

  private:
    struct Running {
        std::size_t number;                ///< of the prompt
        std::vector<std::int32_t> tokens;  ///< of the prompt and the text
        GrowingText text;
    };
    /// Fills free sequences with prompts.
    void begin_texts();
    void read_step();
    /// Lets the text in that sequence grow. If it ends, the sequence is free.
    void grow(std::size_t sequence, std::span<const float> logits);
    void give(const Running& running, const std::optional<GeneratedPiece>& piece);
    void finish(std::size_t sequence);
    void forget() {
        for (std::int64_t i = 0; i < session_.sequences(); ++i) session_.forget_from(0, i);
    }

    Session& session_;
    const Tokenizer& tokenizer_;
    const GenerateOptions& options_;
    const std::int64_t context_;
    const Prompts& prompts_;
    const OnText on_text_;
    std::vector<GenerateResult> results_;
    std::vector<std::optional<Running>> running_;  ///< by sequence
    std::size_t begun_ = 0;                        ///< prompts
    bool goes_on_ = true;
};

}  // namespace dlprim::language
