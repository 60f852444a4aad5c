// SPDX-License-Identifier: MIT
// A small parser of kernel signatures: tokens, then `kernel ... void NAME ( parameters )`.
#include "runtime/kernel_parameters.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace dlprim {
namespace {

// A word, a number or a single character of a text, and where it stands.
struct Token {
    std::string_view text;  // refers to the source
    std::size_t at = 0;
    bool macro = false;      // in a line of the preprocessor
    bool directive = false;  // the # that begins such a line
};
using Tokens = std::vector<Token>;

bool word_char(char c) {
    return ascii::is_word(c);
}
bool is_word(std::string_view token) {
    return !token.empty() && word_char(token[0]) && !ascii::is_digit(token[0]);
}

// Reads a text from its beginning to its end, one token after the other.
class Reader {
  public:
    explicit Reader(std::string_view text, bool strings = false)
        : text_(text), keeps_strings_(strings) {}

    Tokens tokens() {
        Tokens tokens;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n')
                end_line();
            else if (ascii::is_space(c))
                ++at_;
            else if (starts_with("//"))
                skip_line_comment();
            else if (starts_with("/*"))
                skip_block_comment();
            else if (c == '\\' && (starts_with("\\\n") || starts_with("\\\r\n")))
                at_ = text_.find('\n', at_) + 1;  // the line goes on in the next one
            else if (c == '"' || c == '\'')
                read_string(tokens, c);
            else
                add_token(tokens);
        }
        return tokens;
    }

  private:
    bool starts_with(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
    void end_line() {
        ++at_;
        line_start_ = true;
        macro_ = false;
    }
    void skip_line_comment() {
        while (at_ < text_.size() && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    }
    void skip_block_comment() {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
    }
    // An apostrophe in the words of an #error has no other that closes it.
    void read_string(Tokens& tokens, char quote) {
        const std::size_t begin = at_;
        skip_string(quote);
        line_start_ = false;
        if (keeps_strings_) tokens.push_back({text_.substr(begin, at_ - begin), begin, macro_});
    }
    void skip_string(char quote) {
        for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
            if (macro_ && text_[at_] == '\n') return;
            at_ += text_[at_] == '\\';
        }
        at_ = std::min(at_ + 1, text_.size());
    }
    void add_token(Tokens& tokens) {
        const bool directive = text_[at_] == '#' && line_start_;
        macro_ = macro_ || directive;
        line_start_ = false;
        const std::size_t begin = at_++;
        if (word_char(text_[begin]))
            while (at_ < text_.size() && word_char(text_[at_])) ++at_;
        tokens.push_back({text_.substr(begin, at_ - begin), begin, macro_, directive});
    }

    std::string_view text_;
    bool keeps_strings_;
    std::size_t at_ = 0;
    bool line_start_ = true, macro_ = false;
};

// The tokens of the text in their order, without comments and strings.
Tokens tokens_of(std::string_view source) {
    return Reader(source).tokens();
}

// The tokens that are not of the preprocessor.
Tokens without_macros(Tokens tokens) {
    std::erase_if(tokens, [](const Token& token) { return token.macro; });
    return tokens;
}

bool is(const Token& token, std::string_view text) {
    return token.text == text;
}

// The index after the parenthesis that closes the one at `i`.
std::size_t past_group(const Tokens& tokens, std::size_t i) {
    int depth = 0;
    for (; i < tokens.size(); ++i) {
        if (is(tokens[i], "(")) ++depth;
        if (is(tokens[i], ")") && --depth == 0) return i + 1;
    }
    return i;
}

std::size_t past_attributes(const Tokens& tokens, std::size_t i) {
    while (i + 1 < tokens.size() &&
           (is(tokens[i], "__attribute__") || is(tokens[i], "__attribute")) &&
           is(tokens[i + 1], "("))
        i = past_group(tokens, i + 1);
    return i;
}

// Parameters between the parentheses [open, close).
std::vector<KernelParameter> parameters_in(const Tokens& tokens, std::size_t open,
                                           std::size_t close) {
    std::vector<KernelParameter> parameters;
    std::vector<std::string> words;
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
        const std::string_view token = tokens[i].text;
        if (token == "(" || token == "[" || token == "{") ++depth;
        if (token == ")" || token == "]" || token == "}") --depth;
        if (depth == 0 && token == ",")
            end_parameter();
        else if (depth == 0 && (is_word(token) || token == "*"))
            words.emplace_back(token);
    }
    const bool nothing = words.size() == 1 && words[0] == "void" && parameters.empty();
    if (!nothing) end_parameter();
    return parameters;
}

std::size_t scalar_bytes(std::string_view type) {
    if (type.starts_with("const ")) type.remove_prefix(6);
    if (type == "int" || type == "uint" || type == "float") return 4;
    return type == "long" || type == "ulong" ? 8 : 0;
}

using Structs = std::map<std::string, std::vector<KernelParameter>, std::less<>>;

// The members of the struct whose braces are the tokens [open, close), or nothing if one of them is
// no scalar.
std::vector<KernelParameter> members_in(const Tokens& tokens, std::size_t open, std::size_t close) {
    std::vector<KernelParameter> members;
    std::string_view type;
    std::size_t end = 0;
    for (std::size_t i = open + 1; i < close; ++i) {
        const std::string_view token = tokens[i].text;
        if (token == ";") {
            type = {};
        } else if (type.empty()) {
            type = token;
        } else if (token != ",") {
            const std::size_t bytes = scalar_bytes(type);
            if (bytes == 0 || !is_word(token)) return {};
            end = (end + bytes - 1) / bytes * bytes;
            members.push_back({std::string(type), std::string(token), 0, {}, end, bytes});
            end += bytes;
        }
    }
    return members;
}

// The text's structs of scalars, by name.
Structs structs_in(const Tokens& tokens) {
    Structs found;
    for (std::size_t i = 2; i < tokens.size(); ++i) {
        if (!is(tokens[i], "{") || !is(tokens[i - 1], "struct") || !is(tokens[i - 2], "typedef"))
            continue;
        std::size_t close = i;
        while (close < tokens.size() && !is(tokens[close], "}")) ++close;
        if (close + 1 >= tokens.size()) break;
        std::vector<KernelParameter> members = members_in(tokens, i, close);
        if (!members.empty()) found[std::string(tokens[close + 1].text)] = std::move(members);
        i = close;
    }
    return found;
}

// The members of structs in place of the parameters of those types.
std::vector<KernelParameter> with_members(std::vector<KernelParameter> declared,
                                          const Structs& structs) {
    std::vector<KernelParameter> parameters;
    for (std::size_t i = 0; i < declared.size(); ++i) {
        KernelParameter& parameter = declared[i];
        parameter.argument = static_cast<int>(i);
        parameter.bytes = scalar_bytes(parameter.type);
        std::string_view type = parameter.type;
        if (type.starts_with("const ")) type.remove_prefix(6);
        const auto known = structs.find(type);
        if (known == structs.end()) {
            parameters.push_back(std::move(parameter));
            continue;
        }
        for (KernelParameter member : known->second) {
            member.argument = static_cast<int>(i);
            member.in = cat(type, ' ', parameter.name);
            parameters.push_back(std::move(member));
        }
    }
    return parameters;
}

// The index after the brace that closes the one at `open`, or 0 if none does.
std::size_t past_body(const Tokens& tokens, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < tokens.size(); ++i) {
        if (is(tokens[i], "{")) ++depth;
        if (is(tokens[i], "}") && --depth == 0) return i + 1;
    }
    return 0;
}

// `kernel void NAME ( parameters )` as indices of tokens.
struct Signature {
    std::size_t name, open, end;
};

std::vector<Signature> signatures_in(const Tokens& tokens) {
    std::vector<Signature> found;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (!is(tokens[i], "kernel") && !is(tokens[i], "__kernel")) continue;
        std::size_t at = past_attributes(tokens, i + 1);
        if (at >= tokens.size() || !is(tokens[at], "void")) continue;
        at = past_attributes(tokens, at + 1);
        if (at + 1 >= tokens.size() || !is_word(tokens[at].text) || !is(tokens[at + 1], "("))
            continue;
        const std::size_t end = past_group(tokens, at + 1);
        if (!is(tokens[end - 1], ")")) continue;
        found.push_back({at, at + 1, end});
        i = end - 1;
    }
    return found;
}

std::vector<KernelParameter> parameters_of(const Tokens& tokens, const Signature& signature,
                                           const Structs& structs) {
    return with_members(parameters_in(tokens, signature.open, signature.end - 1), structs);
}

// Whether one of `words` is among the tokens from `begin` to `end`.
bool mentioned(const Tokens& tokens, std::size_t begin, std::size_t end,
               const std::vector<std::string_view>& words) {
    for (std::size_t i = begin; i < std::min(end, tokens.size()); ++i)
        if (std::find(words.begin(), words.end(), tokens[i].text) != words.end()) return true;
    return false;
}

// Whether a blank between two tokens would change the program: inside an operator of two
// characters, and after the name that a #define gives to a macro with arguments.
bool joined(const Tokens& tokens, std::size_t i) {
    const Token &last = tokens[i - 1], &token = tokens[i];
    if (last.at + last.text.size() != token.at) return false;
    if (token.macro && token.text == "(" && i >= 2 && is(tokens[i - 2], "define")) return true;
    constexpr std::string_view pairs =
        "++ -- << >> <= >= == != && || += -= *= /= %= &= |= ^= -> ##";
    if (last.text.size() != 1 || token.text.size() != 1) return false;
    const std::array<char, 2> pair{last.text[0], token.text[0]};
    const std::size_t found = pairs.find(std::string_view(pair.data(), 2));
    return found != std::string_view::npos && found % 3 == 0;
}

}  // namespace

std::string code_of(std::string_view source) {
    const Tokens tokens = Reader(source, true).tokens();
    std::string code;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        // A directive is a line of its own.
        if (i > 0 && (tokens[i].directive || tokens[i].macro != tokens[i - 1].macro))
            code += '\n';
        else if (i > 0 && !joined(tokens, i))
            code += ' ';
        code += tokens[i].text;
    }
    return code;
}

KernelSignatures kernel_signatures(std::string_view source) {
    std::map<std::string, std::vector<KernelParameter>, std::less<>> found;
    const Tokens tokens = without_macros(tokens_of(source));
    const Structs structs = structs_in(tokens);
    for (const Signature& signature : signatures_in(tokens)) {
        const auto [parameters, added] =
            found.try_emplace(std::string(tokens[signature.name].text));
        if (added) parameters->second = parameters_of(tokens, signature, structs);
    }
    return found;
}

std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel) {
    const auto all = kernel_signatures(source);
    const auto found = all.find(kernel);
    return found == all.end() ? std::vector<KernelParameter>() : found->second;
}

std::size_t struct_bytes(const std::vector<KernelParameter>& parameters, std::size_t index) {
    if (parameters[index].in.empty()) return 0;
    std::size_t end = 0, widest = 1;
    for (const KernelParameter& member : parameters) {
        if (member.argument != parameters[index].argument) continue;
        end = std::max(end, member.offset + member.bytes);
        widest = std::max(widest, member.bytes);
    }
    return (end + widest - 1) / widest * widest;
}

std::optional<KernelDefinition> kernel_definition(std::string_view source,
                                                  std::string_view kernel) {
    const Tokens tokens = without_macros(tokens_of(source));
    for (const Signature& signature : signatures_in(tokens)) {
        if (!is(tokens[signature.name], kernel)) continue;
        if (signature.end >= tokens.size() || !is(tokens[signature.end], "{")) continue;
        const std::size_t past = past_body(tokens, signature.end);
        if (past == 0) return std::nullopt;
        return KernelDefinition{tokens[signature.open].at + 1, tokens[signature.end].at + 1,
                                tokens[past - 1].at + 1};
    }
    return std::nullopt;
}

std::vector<std::string> declared_names(std::string_view source) {
    std::vector<std::string> names;
    const Tokens tokens = without_macros(tokens_of(source));
    std::string_view candidate;  // the last word outside parentheses
    for (std::size_t i = 0; i < tokens.size();) {
        i = past_attributes(tokens, i);
        if (i >= tokens.size()) break;
        const std::string_view token = tokens[i].text;
        if (token == ";" || token == "=" || token == "{") {
            if (!candidate.empty() && candidate != "struct") names.emplace_back(candidate);
            candidate = {};
            int depth = 0;
            if (token == "=")  // the initialiser, up to its semicolon
                while (i < tokens.size() && !is(tokens[i], ";")) ++i;
            for (; token == "{" && i < tokens.size(); ++i) {
                if (is(tokens[i], "{")) ++depth;
                if (is(tokens[i], "}") && --depth == 0) break;
            }
            ++i;
        } else if (token == "(") {
            i = past_group(tokens, i);
        } else if (token == "[") {
            while (i < tokens.size() && !is(tokens[i], "]")) ++i;
            ++i;
        } else {
            if (is_word(token)) candidate = token;
            ++i;
        }
    }
    return names;
}

KernelSignatures::const_iterator kernel_named(const KernelSignatures& kernels,
                                              std::string_view name, const std::string& program) {
    const auto found = kernels.find(name);
    if (found != kernels.end()) return found;
    std::vector<std::string> names;
    for (const auto& entry : kernels) names.push_back(entry.first);
    fail(ErrorKind::not_found, "program '", program, "' has no kernel '", name,
         "' in its text, only ", join(names, ", "));
}

std::string names_of(const std::vector<KernelParameter>& parameters) {
    std::string names;
    for (const KernelParameter& parameter : parameters)
        names += cat(names.empty() ? "" : ", ", parameter.name);
    return names;
}

int parameter_index(const std::vector<KernelParameter>& parameters, const std::string& kernel,
                    std::string_view name) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].name == name) return static_cast<int>(i);
    fail(ErrorKind::invalid_argument, "kernel '", kernel, "' has no parameter '", name, "', only ",
         names_of(parameters));
}

std::vector<std::string> defined_macros(std::string_view source) {
    std::vector<std::string> names;
    const Tokens tokens = tokens_of(source);
    for (std::size_t i = 2; i < tokens.size(); ++i)
        if (tokens[i - 2].directive && is(tokens[i - 1], "define"))
            names.emplace_back(tokens[i].text);
    return names;
}

bool mentions(std::string_view source, const std::vector<std::string_view>& words) {
    return mentioned(without_macros(tokens_of(source)), 0, std::string_view::npos, words);
}

bool mentions_outside_kernels(std::string_view source, const std::vector<std::string_view>& words) {
    const Tokens tokens = without_macros(tokens_of(source));
    std::size_t begin = 0;
    for (const Signature& signature : signatures_in(tokens)) {
        if (signature.end >= tokens.size() || !is(tokens[signature.end], "{")) continue;
        const std::size_t past = past_body(tokens, signature.end);
        if (past == 0 || mentioned(tokens, begin, signature.end, words)) return true;
        begin = past;
    }
    return mentioned(tokens, begin, tokens.size(), words);
}

}  // namespace dlprim
