// SPDX-License-Identifier: MIT
// tokenizer.json of byte-level BPE, of SentencePiece's BPE, of Unigram, and of WordPiece.
#include "language/tokenizer_json.hpp"

#include "base/base64.hpp"
#include "base/text.hpp"
#include "language/splitter.hpp"
#include "language/wordpiece.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace dlprim::language {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t kind_of(const TokenizerTables& tables, std::size_t token) {
    return token < tables.kinds.size() ? tables.kinds[token] : token_kind::plain;
}

/// How the vocabulary of a tokenizer.json spells a token.
std::string spelled(const TokenizerTables& tables, std::size_t token) {
    const std::string& name = tables.tokens[token];
    if (tables.model != "bert" || kind_of(tables, token) != token_kind::plain) return name;
    if (name.starts_with(space_mark)) return name.substr(space_mark.size());
    return word_piece_name(name, "") == name ? name : cat("##", name);
}

Json vocabulary_of(const TokenizerTables& tables) {
    Json vocabulary = Json::object();
    for (std::size_t i = 0; i < tables.tokens.size(); ++i)
        if (!tables.tokens[i].empty() && kind_of(tables, i) != token_kind::unused)
            vocabulary.emplace(spelled(tables, i), i);
    return vocabulary;
}

/// Special tokens, and those that are found in text before it is split.
Json added_tokens(const TokenizerTables& tables) {
    Json added = Json::array();
    for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
        const std::int64_t kind = kind_of(tables, i);
        const bool special = kind == token_kind::control || kind == token_kind::unknown;
        if ((!special && kind != token_kind::user_defined) || tables.tokens[i].empty()) continue;
        const auto strips = tables.strips.find(static_cast<std::int64_t>(i));
        const bool left = strips != tables.strips.end() && strips->second.first,
                   right = strips != tables.strips.end() && strips->second.second;
        added.push_back({{"id", i},
                         {"content", tables.tokens[i]},
                         {"single_word", false},
                         {"lstrip", left},
                         {"rstrip", right},
                         {"normalized", false},
                         {"special", special}});
    }
    return added;
}

/// Pairs of tokens that together are a token: the one with the best score first, as
/// SentencePiece merges. Of one token, pairs with the lower numbers come first.
Json merges_by_scores(const TokenizerTables& tables) {
    std::unordered_map<std::string_view, std::size_t> numbers;
    for (std::size_t i = 0; i < tables.tokens.size(); ++i)
        if (kind_of(tables, i) == token_kind::plain) numbers.emplace(tables.tokens[i], i);
    std::vector<std::tuple<double, std::size_t, std::size_t>> pairs;
    for (const auto& [name, number] : numbers)
        for (std::size_t at = 1; at < name.size(); ++at) {
            const auto left = numbers.find(name.substr(0, at)),
                       right = numbers.find(name.substr(at));
            if (left != numbers.end() && right != numbers.end())
                pairs.emplace_back(-tables.scores.at(number), left->second, right->second);
        }
    std::sort(pairs.begin(), pairs.end());
    Json merges = Json::array();
    for (const auto& [score, left, right] : pairs)
        merges.push_back(Json::array({tables.tokens[left], tables.tokens[right]}));
    return merges;
}

Json given_merges(const TokenizerTables& tables) {
    Json merges = Json::array();
    for (const std::string& merge : tables.merges) {
        const std::size_t space = std::min(merge.find(' ', 1), merge.size() - 1);
        merges.push_back(Json::array({merge.substr(0, space), merge.substr(space + 1)}));
    }
    return merges;
}

Json bpe_model(const TokenizerTables& tables, bool is_byte_level) {
    Json unknown = nullptr;
    for (std::size_t i = 0; i < tables.tokens.size(); ++i)
        if (kind_of(tables, i) == token_kind::unknown) unknown = tables.tokens[i];
    const auto has_bytes = [&] {
        return std::count(tables.kinds.begin(), tables.kinds.end(), token_kind::byte) > 0;
    };
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unknown},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", !is_byte_level},
            {"byte_fallback", !is_byte_level && has_bytes()},
            {"ignore_merges", is_byte_level && tables.whole_pieces},
            {"vocab", vocabulary_of(tables)},
            {"merges", tables.scores.empty() ? given_merges(tables) : merges_by_scores(tables)}};
}

/// An expression in the syntax that `tokenizers` reads.
std::string translated(std::string pattern) {
    for (const auto& [from, to] :
         {std::pair("\\p{White_Space}", "\\s"), {"\\P{White_Space}", "\\S"}})
        for (std::size_t at = pattern.find(from); at != std::string::npos; at = pattern.find(from))
            pattern.replace(at, std::string_view(from).size(), to);
    return pattern;
}

void add_byte_level(const TokenizerTables& tables, Json& file) {
    Json steps = Json::array();
    const bool has_patterns = !tables.patterns.empty();
    for (const std::string& pattern :
         has_patterns ? tables.patterns : patterns_of_splitter(tables.splitter))
        steps.push_back({{"type", "Split"},
                         {"pattern", {{"Regex", translated(pattern)}}},
                         {"behavior", "Isolated"},
                         {"invert", false}});
    const Json bytes{{"type", "ByteLevel"},
                     {"add_prefix_space", tables.space != TokenizerTables::Space::none},
                     {"trim_offsets", true},
                     {"use_regex", false}};
    steps.push_back(bytes);
    if (tables.composed) file["normalizer"] = {{"type", "NFC"}};
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    file["decoder"] = bytes;
    TokenizerTables known = tables;
    if (!has_patterns) known.whole_pieces = takes_whole_pieces(tables.splitter);
    file["model"] = bpe_model(known, true);
}

void add_sentence_piece(const TokenizerTables& tables, Json& file) {
    const std::string mark(space_mark);
    const bool has_space = tables.space != TokenizerTables::Space::none;
    Json steps = Json::array();
    if (has_space) steps.push_back({{"type", "Prepend"}, {"prepend", mark}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}});
    file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    Json back =
        Json::array({{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}},
                     {{"type", "ByteFallback"}},
                     {{"type", "Fuse"}}});
    if (has_space) back.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    file["decoder"] = {{"type", "Sequence"}, {"decoders", back}};
    file["model"] = bpe_model(tables, false);
}

void add_unigram(const TokenizerTables& tables, Json& file) {
    const UnigramRules& rules = tables.unigram;
    Json steps = Json::array(), splitters = Json::array(), tokens = Json::array();
    if (!rules.characters.empty())
        steps.push_back(
            {{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(rules.characters)}});
    if (rules.strip_left || rules.strip_right)
        steps.push_back({{"type", "Strip"},
                         {"strip_left", rules.strip_left},
                         {"strip_right", rules.strip_right}});
    if (rules.join_spaces)
        steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
    if (!steps.empty()) file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    using Space = TokenizerTables::Space;
    const char* const scheme = tables.space == Space::none            ? "never"
                               : tables.space == Space::first_without ? "first"
                                                                      : "always";
    const Json marks{{"type", "Metaspace"},
                     {"replacement", space_mark},
                     {"prepend_scheme", scheme},
                     {"split", !tables.patterns.empty()}};
    if (rules.split_spaces) splitters.push_back({{"type", "WhitespaceSplit"}});
    splitters.push_back(marks);
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", splitters}};
    file["decoder"] = marks;
    for (std::size_t i = 0; i < tables.tokens.size(); ++i)
        tokens.push_back(Json::array({tables.tokens[i], tables.scores.at(i)}));
    const bool has_bytes =
        std::count(tables.kinds.begin(), tables.kinds.end(), token_kind::byte) > 0;
    file["model"] = {{"type", "Unigram"},
                     {"unk_id", tables.unknown ? Json(*tables.unknown) : Json(nullptr)},
                     {"vocab", tokens},
                     {"byte_fallback", has_bytes}};
}

void add_word_piece(const TokenizerTables& tables, Json& file) {
    const WordPieceRules& rules = tables.word_piece;
    file["normalizer"] = {{"type", "BertNormalizer"},
                          {"clean_text", rules.clean},
                          {"handle_chinese_chars", rules.chinese},
                          {"strip_accents", rules.strip_accents},
                          {"lowercase", rules.lower}};
    file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    file["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    file["model"] = {
        {"type", "WordPiece"},
        {"unk_token", tables.tokens.at(static_cast<std::size_t>(tables.unknown.value()))},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", rules.longest_word},
        {"vocab", vocabulary_of(tables)}};
}

/// What a text begins and ends with.
Json template_of(const TokenizerTables& tables) {
    Json parts = Json::array(), specials = Json::object();
    const auto add = [&](const std::optional<std::int64_t>& token) {
        if (!token) return;
        const std::string& name = tables.tokens.at(static_cast<std::size_t>(*token));
        parts.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
        specials[name] = {{"id", name}, {"ids", {*token}}, {"tokens", {name}}};
    };
    const Json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    if (tables.add_begin) add(tables.begin);
    parts.push_back(text);
    add(tables.separator);
    if (parts.size() == 1) return nullptr;
    Json pair = parts;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
    if (tables.separator) pair.push_back(parts.back());
    return {{"type", "TemplateProcessing"},
            {"single", parts},
            {"pair", pair},
            {"special_tokens", specials}};
}

}  // namespace

Json tokenizer_json(const TokenizerTables& tables) {
    Json file{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", added_tokens(tables)},
              {"normalizer", nullptr},
              {"pre_tokenizer", nullptr},
              {"post_processor", template_of(tables)},
              {"decoder", nullptr},
              {"model", nullptr}};
    if (tables.model == "bert")
        add_word_piece(tables, file);
    else if (tables.model == "gpt2")
        add_byte_level(tables, file);
    else if (tables.model == "t5")
        add_unigram(tables, file);
    else
        add_sentence_piece(tables, file);
    return file;
}

}  // namespace dlprim::language
