// SPDX-License-Identifier: MIT
// Texts side by side.
#include "language/batch.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::language {

namespace {

/// How many tokens both begin with.
std::size_t common(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(ends.first - a.begin());
}

}  // namespace

Batch::Batch(Session& session, const Tokenizer& tokenizer, std::int64_t context)
    : session_(session),
      tokenizer_(tokenizer),
      context_(context),
      sequences_(static_cast<std::size_t>(session.sequences())) {
    forget();
}

void Batch::forget() {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
        session_.forget_from(0, static_cast<std::int64_t>(i));
        sequences_[i].read.clear();
    }
}

std::size_t Batch::add(const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
    texts_.try_emplace(next_,
                       Text{prompt, options.remember, {tokenizer_, options, std::ssize(prompt)}});
    waiting_.push_back(next_);
    return next_++;
}

GenerateResult Batch::take(std::size_t number) {
    const auto found = texts_.find(number);
    require(found != texts_.end(), "there is no text ", number, ", or it was taken");
    Text& text = found->second;
    if (!text.text.has_ended()) {
        text.text.end(GenerateResult::End::caller);
        release(text);
        std::erase(waiting_, number);
    }
    --ended_;
    const Text taken = std::move(text);
    texts_.erase(found);
    if (taken.error) std::rethrow_exception(taken.error);
    return taken.text.result();
}

std::vector<Batch::Part> Batch::step() {
    parts_.clear();
    try {
        place_waiting();
        read_prompts();
        read_tokens();
    } catch (...) {
        fail_running();
    }
    return std::move(parts_);
}

void Batch::place_waiting() {
    const auto is_free = [](const Sequence& sequence) { return !sequence.text; };
    while (!waiting_.empty() && std::any_of(sequences_.begin(), sequences_.end(), is_free)) {
        place(waiting_.front());
        waiting_.pop_front();
    }
}

void Batch::place(std::size_t number) {
    Text& text = texts_.at(number);
    // The last token of a prompt is always read, since the logits behind it are wanted.
    const auto kept = [&](const Sequence& sequence) {
        return text.remember ? std::min(common(sequence.read, text.tokens), text.tokens.size() - 1)
                             : 0;
    };
    const auto from =
        std::max_element(sequences_.begin(), sequences_.end(),
                         [&](const Sequence& a, const Sequence& b) { return kept(a) < kept(b); });
    auto to = from;
    const std::size_t same = kept(*from);
    if (same == 0 || from->text)  // the one that was used the longest time ago
        to = std::min_element(sequences_.begin(), sequences_.end(),
                              [](const Sequence& a, const Sequence& b) {
                                  return std::pair(a.text.has_value(), a.used) <
                                         std::pair(b.text.has_value(), b.used);
                              });
    session_.share(from - sequences_.begin(), to - sequences_.begin(),
                   static_cast<std::int64_t>(same));
    to->read.assign(text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(same));
    to->text = number;
    to->used = ++uses_;
    text.sequence = static_cast<std::size_t>(to - sequences_.begin());
    text.text.begin(static_cast<std::int64_t>(same));
}

std::int64_t Batch::unread(const Text& text) const {
    return std::ssize(text.tokens) - std::ssize(sequences_[*text.sequence].read);
}

void Batch::read_prompts() {
    std::optional<std::size_t> first;
    for (const Sequence& sequence : sequences_)
        if (sequence.text && (!first || *sequence.text < *first) &&
            session_.fills_piece(unread(texts_.at(*sequence.text))))
            first = sequence.text;
    if (!first) return;
    const Text& text = texts_.at(*first);
    Sequence& sequence = sequences_[*text.sequence];
    const auto piece =
        std::span(text.tokens)
            .subspan(sequence.read.size(),
                     static_cast<std::size_t>(std::min(session_.piece(), unread(text))));
    const std::span<const float> logits =
        session_.read(piece, static_cast<std::int64_t>(*text.sequence));
    sequence.read.insert(sequence.read.end(), piece.begin(), piece.end());
    grow(*first, logits);
}

void Batch::read_tokens() {
    std::vector<Session::Next> next;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
        if (!sequences_[i].text) continue;
        const Text& text = texts_.at(*sequences_[i].text);
        if (session_.fills_piece(unread(text))) continue;
        next.push_back({static_cast<std::int64_t>(i), text.tokens[sequences_[i].read.size()]});
        numbers.push_back(*sequences_[i].text);
    }
    if (next.empty()) return;
    const std::span<const float> logits = session_.read_next(next);
    for (const Session::Next& each : next)
        sequences_[static_cast<std::size_t>(each.sequence)].read.push_back(each.token);
    const std::size_t count = logits.size() / next.size();
    for (std::size_t i = 0; i < next.size(); ++i)
        grow(numbers[i], logits.subspan(i * count, count));
}

void Batch::grow(std::size_t number, std::span<const float> logits) {
    Text& text = texts_.at(number);
    if (unread(text) > 0) return;
    try {
        choose(text, number, logits);
    } catch (...) {  // of this text alone, such as logits that are not numbers
        text.error = std::current_exception();
        text.text.end(GenerateResult::End::caller);
        parts_.push_back({number, std::nullopt, true});
    }
    if (text.text.has_ended()) release(text);
}

void Batch::choose(Text& text, std::size_t number, std::span<const float> logits) {
    using End = GenerateResult::End;
    const std::int64_t made = std::ssize(text.text.result().tokens);
    if (made == 0) text.text.set_prompt_read();
    std::optional<GeneratedPiece> piece = text.text.add(logits, text.tokens);
    if (text.text.has_ended()) return parts_.push_back({number, std::move(piece), true});
    text.tokens.push_back(text.text.result().tokens.back());
    const bool is_full = text.text.is_full();
    if (!is_full && std::ssize(text.tokens) <= context_)
        return parts_.push_back({number, std::move(piece), false});
    std::optional<GeneratedPiece> last = text.text.last(is_full ? End::length : End::context);
    parts_.push_back({number, std::move(piece), !last});
    if (last) parts_.push_back({number, std::move(last), true});
}

void Batch::fail_running() {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
        Sequence& sequence = sequences_[i];
        if (sequence.text) {
            Text& text = texts_.at(*sequence.text);
            text.error = std::current_exception();
            text.text.end(GenerateResult::End::caller);
            parts_.push_back({*sequence.text, std::nullopt, true});
            release(text);
        }
        session_.forget_from(0, static_cast<std::int64_t>(i));
        sequence.read.clear();
    }
}

void Batch::release(Text& text) {
    ++ended_;
    if (text.sequence) sequences_[*text.sequence].text.reset();
    text.sequence.reset();
}

}  // namespace dlprim::language
