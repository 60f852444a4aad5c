// SPDX-License-Identifier: MIT
// A small reader of kernel signatures: tokens, then `kernel ... void NAME ( parameters )`.
#include "runtime/kernel_parameters.hpp"

#include <cctype>

namespace dlprim {
namespace {

using Tokens = std::vector<std::string>;

bool word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_word(const std::string& token) {
    return !token.empty() && word_char(token[0]) &&
           !std::isdigit(static_cast<unsigned char>(token[0]));
}

// Words, numbers and single characters, without comments, strings and preprocessor lines.
Tokens tokens_of(std::string_view text) {
    Tokens tokens;
    bool line_start = true;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        if (c == '\n') {
            line_start = true;
            ++i;
        } else if (std::isspace(static_cast<unsigned char>(c))) {
            ++i;
        } else if (c == '/' && next == '/') {
            while (i < text.size() && text[i] != '\n')
                i += text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
        } else if (c == '/' && next == '*') {
            const std::size_t end = text.find("*/", i + 2);
            i = end == std::string_view::npos ? text.size() : end + 2;
        } else if (c == '#' && line_start) {
            while (i < text.size() && text[i] != '\n')
                i += text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
        } else if (c == '"' || c == '\'') {
            for (++i; i < text.size() && text[i] != c; ++i) i += text[i] == '\\';
            ++i;
            line_start = false;
        } else if (word_char(c)) {
            const std::size_t begin = i;
            while (i < text.size() && word_char(text[i])) ++i;
            tokens.emplace_back(text.substr(begin, i - begin));
            line_start = false;
        } else {
            tokens.emplace_back(1, c);
            ++i;
            line_start = false;
        }
    }
    return tokens;
}

// Index past the parenthesis that closes the one at `i`.
std::size_t past_group(const Tokens& tokens, std::size_t i) {
    int depth = 0;
    for (; i < tokens.size(); ++i) {
        if (tokens[i] == "(") ++depth;
        if (tokens[i] == ")" && --depth == 0) return i + 1;
    }
    return i;
}

std::size_t past_attributes(const Tokens& tokens, std::size_t i) {
    while (i + 1 < tokens.size() && (tokens[i] == "__attribute__" || tokens[i] == "__attribute") &&
           tokens[i + 1] == "(")
        i = past_group(tokens, i + 1);
    return i;
}

// Parameter names between the parentheses [open, close).
Tokens names_in(const Tokens& tokens, std::size_t open, std::size_t close) {
    Tokens names;
    std::string last;
    int depth = 0, words = 0;
    for (std::size_t i = past_attributes(tokens, open + 1); i < close;
         i = past_attributes(tokens, i + 1)) {
        const std::string& token = tokens[i];
        if (token == "(" || token == "[" || token == "{") ++depth;
        if (token == ")" || token == "]" || token == "}") --depth;
        if (depth == 0 && token == ",") {
            names.push_back(last);
            last.clear();
        } else if (depth == 0 && is_word(token)) {
            last = token;
            ++words;
        }
    }
    const bool nothing = words == 0 || (words == 1 && last == "void");
    if (!nothing) names.push_back(last);
    return names;
}

}  // namespace

std::map<std::string, std::vector<std::string>, std::less<>> kernel_parameters(
    std::string_view source) {
    std::map<std::string, std::vector<std::string>, std::less<>> found;
    const Tokens tokens = tokens_of(source);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] != "kernel" && tokens[i] != "__kernel") continue;
        std::size_t at = past_attributes(tokens, i + 1);
        if (at >= tokens.size() || tokens[at] != "void") continue;
        at = past_attributes(tokens, at + 1);
        if (at + 1 >= tokens.size() || !is_word(tokens[at]) || tokens[at + 1] != "(") continue;
        const std::size_t end = past_group(tokens, at + 1);
        if (end > tokens.size() || tokens[end - 1] != ")") continue;
        found.emplace(tokens[at], names_in(tokens, at + 1, end - 1));
        i = end - 1;
    }
    return found;
}

}  // namespace dlprim
