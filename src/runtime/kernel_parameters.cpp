// SPDX-License-Identifier: MIT
// A small parser of kernel signatures: tokens, then `kernel ... void NAME ( parameters )`.
#include "runtime/kernel_parameters.hpp"

#include "base/text.hpp"

namespace dlprim {
namespace {

using Tokens = std::vector<std::string>;

bool word_char(char c) {
    return ascii::is_word(c);
}
bool is_word(const std::string& token) {
    return !token.empty() && word_char(token[0]) && !ascii::is_digit(token[0]);
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
        } else if (ascii::is_space(c)) {
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

// The index after the parenthesis that closes the one at `i`.
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

// Parameters between the parentheses [open, close).
std::vector<KernelParameter> parameters_in(const Tokens& tokens, std::size_t open,
                                           std::size_t close) {
    std::vector<KernelParameter> parameters;
    Tokens words;
    int depth = 0;
    const auto end_parameter = [&] {
        if (words.empty()) return;
        KernelParameter parameter;
        parameter.name = std::move(words.back());
        words.pop_back();
        for (const std::string& word : words)
            parameter.type += parameter.type.empty() ? word : ' ' + word;
        parameters.push_back(std::move(parameter));
        words.clear();
    };
    for (std::size_t i = past_attributes(tokens, open + 1); i < close;
         i = past_attributes(tokens, i + 1)) {
        const std::string& token = tokens[i];
        if (token == "(" || token == "[" || token == "{") ++depth;
        if (token == ")" || token == "]" || token == "}") --depth;
        if (depth == 0 && token == ",")
            end_parameter();
        else if (depth == 0 && (is_word(token) || token == "*"))
            words.push_back(token);
    }
    const bool nothing = words.size() == 1 && words[0] == "void" && parameters.empty();
    if (!nothing) end_parameter();
    return parameters;
}

using Signatures = std::map<std::string, std::vector<KernelParameter>, std::less<>>;

Signatures signatures_in(std::string_view source) {
    Signatures found;
    const Tokens tokens = tokens_of(source);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] != "kernel" && tokens[i] != "__kernel") continue;
        std::size_t at = past_attributes(tokens, i + 1);
        if (at >= tokens.size() || tokens[at] != "void") continue;
        at = past_attributes(tokens, at + 1);
        if (at + 1 >= tokens.size() || !is_word(tokens[at]) || tokens[at + 1] != "(") continue;
        const std::size_t end = past_group(tokens, at + 1);
        if (end > tokens.size() || tokens[end - 1] != ")") continue;
        found.emplace(tokens[at], parameters_in(tokens, at + 1, end - 1));
        i = end - 1;
    }
    return found;
}

}  // namespace

std::map<std::string, std::vector<std::string>, std::less<>> kernel_parameters(
    std::string_view source) {
    std::map<std::string, std::vector<std::string>, std::less<>> found;
    for (const auto& [kernel, parameters] : signatures_in(source)) {
        Tokens& names = found[kernel];
        for (const KernelParameter& parameter : parameters) names.push_back(parameter.name);
    }
    return found;
}

std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel) {
    const Signatures all = signatures_in(source);
    const auto found = all.find(kernel);
    return found == all.end() ? std::vector<KernelParameter>{} : found->second;
}

std::vector<std::string> declared_names(std::string_view source) {
    std::vector<std::string> names;
    const Tokens tokens = tokens_of(source);
    std::string candidate;  // the last word outside parentheses
    for (std::size_t i = 0; i < tokens.size();) {
        i = past_attributes(tokens, i);
        if (i >= tokens.size()) break;
        const std::string& token = tokens[i];
        if (token == ";" || token == "=" || token == "{") {
            if (!candidate.empty()) names.push_back(candidate);
            candidate.clear();
            int depth = 0;
            if (token == "=")  // the initialiser, up to its semicolon
                while (i < tokens.size() && tokens[i] != ";") ++i;
            for (; token == "{" && i < tokens.size(); ++i) {
                if (tokens[i] == "{") ++depth;
                if (tokens[i] == "}" && --depth == 0) break;
            }
            ++i;
        } else if (token == "(") {
            i = past_group(tokens, i);
        } else if (token == "[") {
            while (i < tokens.size() && tokens[i] != "]") ++i;
            ++i;
        } else {
            if (is_word(token)) candidate = token;
            ++i;
        }
    }
    return names;
}

bool mentions(std::string_view source, const std::vector<std::string_view>& words) {
    for (const std::string& token : tokens_of(source))
        for (const std::string_view word : words)
            if (token == word) return true;
    return false;
}

}  // namespace dlprim
