// SPDX-License-Identifier: MIT
// Unigram: the plain form of a text, and the likeliest tokens.
#include "language/unigram.hpp"

#include "base/text.hpp"
#include "language/characters.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::language {

namespace {

constexpr double unknown_penalty = 10;  ///< below the least score of a token

/// Two spaces or more are one.
std::string with_single_spaces(std::string_view text) {
    std::string made;
    for (const char c : text)
        if (c != ' ' || !made.ends_with(' ')) made += c;
    return made;
}

/// Takes the white space at the ends away.
void strip(const UnigramRules& rules, std::string& text) {
    if (!rules.as_sentencepiece) {
        if (rules.strip_left) text.erase(0, space_at_begin(text));
        if (rules.strip_right) text.resize(text.size() - space_at_end(text));
        return;
    }
    if (rules.strip_left) text.erase(0, text.find_first_not_of(' '));
    if (!rules.strip_right) return;
    while (text.ends_with(' ') || text.ends_with(space_mark))
        text.resize(text.size() - (text.ends_with(' ') ? 1 : space_mark.size()));
}

std::vector<std::string> split_at_spaces(std::string_view text) {
    std::vector<std::string> words;
    bool inside = false;
    while (!text.empty()) {
        const std::size_t space = space_at_begin(text);
        if (space > 0) {
            text.remove_prefix(space);
            inside = false;
            continue;
        }
        const std::size_t size = character_step(text);
        if (!inside) words.emplace_back();
        inside = true;
        words.back() += text.substr(0, size);
        text.remove_prefix(size);
    }
    return words;
}

}  // namespace

Unigram::Unigram(const TokenizerTables& tables, const std::string& source)
    : rules_(tables.unigram), map_(tables.unigram.characters, source), scores_(tables.scores) {
    if (scores_.size() != tables.tokens.size())
        fail(ErrorKind::format, "the tokenizer of '", source, "' has ", tables.tokens.size(),
             " tokens and scores of ", scores_.size());
    double least = 0;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        const std::int64_t kind = i < tables.kinds.size() ? tables.kinds[i] : token_kind::plain;
        if (!std::isfinite(scores_[i]))
            fail(ErrorKind::format, "the tokenizer of '", source, "' has a score for token ", i,
                 " that is no number");
        const bool is_text =
            kind == token_kind::plain || (kind == token_kind::byte && !rules_.as_sentencepiece);
        if (!is_text || tables.tokens[i].empty()) continue;
        least = std::min(least, scores_[i]);
        tokens_.emplace_back(tables.tokens[i], static_cast<std::int32_t>(i));
    }
    unknown_score_ = least - unknown_penalty;
    std::sort(tokens_.begin(), tokens_.end());
}

std::vector<std::string> Unigram::parts_of(std::string_view text) const {
    std::string plain =
        rules_.as_sentencepiece ? map_.plain_by_longest(text) : map_.plain_by_characters(text);
    strip(rules_, plain);
    if (rules_.join_spaces) plain = with_single_spaces(plain);
    if (rules_.split_spaces) return split_at_spaces(plain);
    if (plain.empty()) return {};
    return {std::move(plain)};
}

/// The best way to the place between two characters.
struct Unigram::Node {
    double score = 0;
    std::size_t begin = 0;  ///< of its last token
    std::int32_t token = -1;
    bool is_reached = false;

    void offer(double other, std::size_t from, std::int32_t by) {
        if (is_reached && other <= score) return;
        *this = {other, from, by, true};
    }
};

/// Goes on from a place by every token that begins there, and by an unknown character if no token
/// is that character alone.
void Unigram::offer_tokens(std::string_view text, std::size_t at, std::vector<Node>& nodes) const {
    const std::string_view rest = text.substr(at);
    const std::size_t character = character_step(rest);
    const double score = nodes[at].score;
    bool is_known = false;
    // The tokens that begin with the bytes so far are beside each other, the shortest first.
    auto first = tokens_.begin(), last = tokens_.end();
    for (std::size_t size = 1; size <= rest.size() && first != last; ++size) {
        const auto byte_of = [&](const auto& entry) {
            return entry.first.size() < size ? -1
                                             : static_cast<unsigned char>(entry.first[size - 1]);
        };
        const int byte = static_cast<unsigned char>(rest[size - 1]);
        first = std::partition_point(first, last,
                                     [&](const auto& entry) { return byte_of(entry) < byte; });
        last = std::partition_point(first, last,
                                    [&](const auto& entry) { return byte_of(entry) == byte; });
        if (first == last || first->first.size() != size) continue;
        const auto token = first->second;
        nodes[at + size].offer(score + scores_[static_cast<std::size_t>(token)], at, token);
        is_known = is_known || size == character;
    }
    if (!is_known) nodes[at + character].offer(score + unknown_score_, at, -1);
}

std::vector<Unigram::Piece> Unigram::split(std::string_view text) const {
    std::vector<Node> nodes(text.size() + 1);
    for (std::size_t at = 0; at < text.size(); at += character_step(text.substr(at)))
        offer_tokens(text, at, nodes);
    std::vector<Piece> pieces;
    for (std::size_t end = text.size(); end > 0;) {
        const Node& node = nodes[end];
        const bool joins = node.token < 0 && !pieces.empty() && pieces.back().token < 0;
        const std::size_t size = end - node.begin + (joins ? pieces.back().text.size() : 0);
        if (joins) pieces.pop_back();
        pieces.push_back({text.substr(node.begin, size), node.token});
        end = node.begin;
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
}

}  // namespace dlprim::language
