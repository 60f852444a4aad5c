// SPDX-License-Identifier: MIT
// Texts side by side.
#include "language/batch.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::language {

std::vector<GenerateResult> Batch::run() {
    forget();
    const auto is_running = [](const auto& running) { return running.has_value(); };
    while (goes_on_) {
        begin_texts();
        if (std::none_of(running_.begin(), running_.end(), is_running)) break;
        if (goes_on_) read_step();
    }
    for (std::size_t i = 0; i < running_.size(); ++i) {
        if (!running_[i]) continue;
        running_[i]->text.end(GenerateResult::End::caller);
        finish(i);
    }
    for (; begun_ < prompts_.size(); ++begun_) {
        results_[begun_].prompt_tokens = std::ssize(prompts_[begun_]);
        results_[begun_].end = GenerateResult::End::caller;
    }
    return std::move(results_);
}

void Batch::begin_texts() {
    for (std::size_t i = 0; i < running_.size(); ++i)
        while (goes_on_ && !running_[i] && begun_ < prompts_.size()) {
            const std::vector<std::int32_t>& prompt = prompts_[begun_];
            Running& made = running_[i].emplace(
                Running{begun_++, prompt, {tokenizer_, options_, std::ssize(prompt)}});
            const std::span<const float> logits =
                session_.read(prompt, static_cast<std::int64_t>(i));
            made.text.set_prompt_read(0);
            grow(i, logits);
        }
}

void Batch::read_step() {
    std::vector<Session::Next> next;
    for (std::size_t i = 0; i < running_.size(); ++i)
        if (running_[i]) next.push_back({static_cast<std::int64_t>(i), running_[i]->tokens.back()});
    const std::span<const float> logits = session_.read_next(next);
    const std::size_t count = logits.size() / next.size();
    for (std::size_t i = 0; i < next.size(); ++i)
        grow(static_cast<std::size_t>(next[i].sequence), logits.subspan(i * count, count));
}

void Batch::grow(std::size_t sequence, std::span<const float> logits) {
    using End = GenerateResult::End;
    Running& running = *running_[sequence];
    GrowingText& text = running.text;
    give(running, text.add(logits, running.tokens));
    if (!text.has_ended()) {
        running.tokens.push_back(text.result().tokens.back());
        const bool is_full = text.is_full();
        if (is_full || session_.past(static_cast<std::int64_t>(sequence)) == context_)
            give(running, text.last(is_full ? End::length : End::context));
    }
    if (text.has_ended()) finish(sequence);
}

void Batch::give(const Running& running, const std::optional<GeneratedPiece>& piece) {
    if (!piece || piece->text.empty() || !on_text_) return;
    goes_on_ = on_text_(running.number, piece->text) && goes_on_;
}

void Batch::finish(std::size_t sequence) {
    results_[running_[sequence]->number] = running_[sequence]->text.result();
    running_[sequence].reset();
    session_.forget_from(0, static_cast<std::int64_t>(sequence));
}

}  // namespace dlprim::language
