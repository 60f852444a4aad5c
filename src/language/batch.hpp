// SPDX-License-Identifier: MIT
// Batch: texts that are made side by side, of which as many run at a time as a session has
// sequences. Texts may be added while others run (continuous batching: Yu et al., "Orca", 2022):
//
//   a step   1. texts that wait take the sequences that are free
//            2. a piece of one prompt is read, of the text that came first
//            3. a token of each text whose prompt was read is made, in one step of the device
//
// So texts that run wait for one piece at most. The last few tokens of a prompt, which fill no
// piece, are read one at a time beside the tokens of the other texts. How a prompt is divided, and
// how many rows a step has, does not depend on other texts, so that a text does not either.
#pragma once

#include "language/growing_text.hpp"
#include "language/session.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace dlprim::language {

class Batch {
  public:
    using Part = GenerationBatch::Part;

    /// Both must outlive the batch. The session forgets all. `context` is the most tokens that a
    /// sequence takes.
    Batch(Session& session, const Tokenizer& tokenizer, std::int64_t context);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    // As those of GenerationBatch. The prompt must not be empty, and fit into the context.
    std::size_t add(const std::vector<std::int32_t>& prompt, const GenerateOptions& options);
    std::vector<Part> step();
    GenerateResult take(std::size_t number);
    std::size_t running() const { return texts_.size() - waiting_.size() - ended_; }
    std::size_t waiting() const { return waiting_.size(); }

    /// Forgets what sequences remember.
    void forget();

  private:
    struct Text {
        std::vector<std::int32_t> tokens;  ///< of the prompt and the text
        bool remember;
        GrowingText text;
        std::optional<std::size_t> sequence = {};  ///< while it runs
        std::exception_ptr error = {};
    };
    struct Sequence {
        std::optional<std::size_t> text = {};  ///< the number of the one that runs
        std::vector<std::int32_t> read = {};   ///< tokens that are remembered
        std::uint64_t used = 0;                ///< when a text took it the last time
    };
    void place_waiting();
    /// Lets the text take a sequence that is free, and what any remembers of its prompt.
    void place(std::size_t number);
    /// How many tokens of the text are not read yet: one, when its prompt was read.
    std::int64_t unread(const Text& text) const;
    void read_prompts();
    void read_tokens();
    /// Lets the text grow, if all of its tokens were read.
    void grow(std::size_t number, std::span<const float> logits);
    void choose(Text& text, std::size_t number, std::span<const float> logits);
    /// Ends all texts that run with the exception that is being handled.
    void fail_running();
    /// The text has ended, and its sequence is free.
    void release(Text& text);

    Session& session_;
    const Tokenizer& tokenizer_;
    const std::int64_t context_;
    std::map<std::size_t, Text> texts_;  ///< by number; those that were not taken
    std::deque<std::size_t> waiting_;
    std::vector<Sequence> sequences_;
    std::size_t next_ = 0, ended_ = 0;
    std::uint64_t uses_ = 0;
    std::vector<Part> parts_;  ///< of this step
};

}  // namespace dlprim::language
