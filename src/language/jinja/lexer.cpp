// SPDX-License-Identifier: MIT
// Tokens of a template.
#include "language/jinja/lexer.hpp"

#include <algorithm>
#include <charconv>

namespace dlprim::language::jinja {

namespace {

using TokenKind = Token::Kind;

/// Line ends become "\n", of which one at the end is dropped.
std::string with_plain_lines(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
        out += text[i] == '\r' ? '\n' : text[i];
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

void append_character(Run& run, std::string& out, std::uint32_t code) {
    run.require(code < 0x110000 && (code < 0xD800 || code > 0xDFFF),
                "a text has the escape of a number that is no character");
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
        put(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            put(0xE0 | code >> 12);
        } else {
            put(0xF0 | code >> 18);
            put(0x80 | (code >> 12 & 63));
        }
        put(0x80 | (code >> 6 & 63));
    }
    put(0x80 | (code & 63));
}

/// The text of a string literal's inside, as Python's escapes have it.
std::string unescaped(Run& run, std::string_view raw) {
    constexpr std::string_view letters = "nrtabfv\\'\"\n", meant = "\n\r\t\a\b\f\v\\'\"";
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '\\' || i + 1 == raw.size()) {
            out += raw[i];
            continue;
        }
        const char letter = raw[++i];
        if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
            if (at < meant.size()) out += meant[at];
            continue;
        }
        const bool octal = letter >= '0' && letter <= '7';
        const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
        if (!octal && digits == 0) {
            (out += '\\') += letter;
            continue;
        }
        const std::string_view from = raw.substr(octal ? i : i + 1, octal ? 3 : digits);
        std::uint32_t code = 0;
        const auto read =
            std::from_chars(from.data(), from.data() + from.size(), code, octal ? 8 : 16);
        const auto taken = static_cast<std::size_t>(read.ptr - from.data());
        run.require(read.ec == std::errc() && (octal || taken == digits), "a text has an escape \\",
                    letter, " without its digits");
        append_character(run, out, code);
        i += octal ? taken - 1 : taken;
    }
    return out;
}

class Lexer {
  public:
    Lexer(Run& run, std::string_view text) : run_(run), text_(with_plain_lines(text)) {}

    std::vector<Token> tokens() {
        while (at_ < text_.size()) {
            const std::size_t tag = next_tag();
            if (tag == std::string::npos) {
                add_text(std::string_view(text_).substr(at_));
                break;
            }
            read_tag(tag);
        }
        add(TokenKind::end);
        return std::move(tokens_);
    }

  private:
    std::size_t next_tag() const {
        for (std::size_t i = text_.find('{', at_); i != std::string::npos;
             i = text_.find('{', i + 1))
            if (i + 1 < text_.size() &&
                std::string_view("{%#").find(text_[i + 1]) != std::string::npos)
                return i;
        return std::string::npos;
    }
    bool has(std::string_view part) const {
        return std::string_view(text_).substr(at_).starts_with(part);
    }
    /// Goes on, and counts lines.
    void advance(std::size_t count) {
        const auto from = text_.begin() + static_cast<std::ptrdiff_t>(at_);
        run_.line += static_cast<std::size_t>(
            std::count(from, from + static_cast<std::ptrdiff_t>(count), '\n'));
        at_ += count;
    }
    void skip_blanks() {
        while (at_ < text_.size() && ascii::is_space(text_[at_])) advance(1);
    }
    Token& add(TokenKind kind, std::string text = {}) {
        tokens_.push_back({kind, run_.line, std::move(text)});
        return tokens_.back();
    }
    void add_text(std::string_view text) {
        if (!text.empty()) add(TokenKind::text, std::string(text));
    }

    void read_tag(std::size_t tag) {
        const char kind = text_[tag + 1];
        const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
        std::string_view before = std::string_view(text_).substr(at_, tag - at_);
        const bool line_begins = at_ == 0 || text_[at_ - 1] == '\n';
        if (sign == '-') {
            while (!before.empty() && ascii::is_space(before.back())) before.remove_suffix(1);
        } else if (sign != '+' && kind != '{') {
            const std::size_t line = before.rfind('\n') + 1;  // 0 if there is none
            const std::string_view blanks = before.substr(line);
            if ((line > 0 || line_begins) &&
                std::all_of(blanks.begin(), blanks.end(), ascii::is_space))
                before = before.substr(0, line);
        }
        add_text(before);
        advance(tag - at_);
        const bool signed_tag = sign == '-' || (sign == '+' && kind != '{');
        if (kind == '#') return skip_comment();
        advance(signed_tag ? 3 : 2);
        add(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin);
        if (kind == '%' && skip_raw()) return;
        read_inside(kind == '{' ? "}}" : "%}");
    }

    /// Behind the end of a block or a comment: `sign` is what stands before it.
    void trim_behind(char sign) {
        if (sign == '-')
            skip_blanks();
        else if (sign != '+' && at_ < text_.size() && text_[at_] == '\n')
            advance(1);
    }

    void skip_comment() {
        const std::size_t end = text_.find("#}", at_ + 2);
        run_.require(end != std::string::npos, "a comment {# has no end");
        const char sign = end > at_ + 2 ? text_[end - 1] : ' ';
        advance(end + 2 - at_);
        trim_behind(sign);
    }

    /// {% raw %}, whose text holds no tags. Returns whether it was one.
    bool skip_raw() {
        const std::size_t start = at_;
        const std::size_t line = run_.line;
        skip_blanks();
        if (has("raw")) {
            advance(3);
            skip_blanks();
            const char sign = at_ < text_.size() ? text_[at_] : ' ';
            if (sign == '-' || sign == '+') advance(1);
            if (has("%}")) {
                advance(2);
                trim_behind(sign);
                read_raw();
                return true;
            }
        }
        at_ = start;
        run_.line = line;
        return false;
    }

    void read_raw() {
        tokens_.pop_back();
        for (std::size_t tag = text_.find("{%", at_);; tag = text_.find("{%", tag + 2)) {
            run_.require(tag != std::string::npos, "{% raw %} has no {% endraw %}");
            std::size_t name = tag + 2;
            const bool strips = name < text_.size() && text_[name] == '-';
            if (strips || (name < text_.size() && text_[name] == '+')) ++name;
            while (name < text_.size() && ascii::is_space(text_[name])) ++name;
            if (text_.compare(name, 6, "endraw") != 0) continue;
            const std::size_t end = text_.find("%}", name);
            run_.require(end != std::string::npos, "{% endraw has no %}");
            std::string_view inside = std::string_view(text_).substr(at_, tag - at_);
            while (strips && !inside.empty() && ascii::is_space(inside.back()))
                inside.remove_suffix(1);
            add_text(inside);
            const char sign = text_[end - 1];
            advance(end + 2 - at_);
            return trim_behind(sign);
        }
    }

    void read_inside(std::string_view end) {
        int open = 0;
        for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
            const char sign = text_[at_];
            const bool signed_end = (sign == '-' || (sign == '+' && end == "%}")) &&
                                    text_.compare(at_ + 1, 2, end) == 0;
            if (open == 0 && (signed_end || has(end))) {
                advance(signed_end ? 3 : 2);
                add(end == "}}" ? TokenKind::output_end : TokenKind::block_end);
                if (end == "%}" || sign == '-') trim_behind(signed_end ? sign : ' ');
                return;
            }
            if (sign == '\'' || sign == '"')
                read_string(sign);
            else if (ascii::is_digit(sign))
                read_number();
            else if (ascii::is_letter(sign) || sign == '_')
                read_name();
            else
                open += read_sign();
        }
        run_.fail("a tag has no ", end);
    }

    void read_string(char quote) {
        std::size_t end = at_ + 1;
        while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
        run_.require(end < text_.size(), "a text begins with ", quote, " and does not end");
        add(TokenKind::string,
            unescaped(run_, std::string_view(text_).substr(at_ + 1, end - at_ - 1)));
        advance(end + 1 - at_);
    }

    void read_name() {
        std::size_t end = at_;
        while (end < text_.size() && ascii::is_word(text_[end])) ++end;
        add(TokenKind::name, text_.substr(at_, end - at_));
        advance(end - at_);
    }

    void read_number() {
        const bool behind_point = at_ > 0 && text_[at_ - 1] == '.';
        std::size_t end = at_;
        const auto digits = [&] {
            while (end < text_.size() && (ascii::is_digit(text_[end]) || text_[end] == '_')) ++end;
        };
        const auto digit_at = [&](std::size_t i) {
            return i < text_.size() && ascii::is_digit(text_[i]);
        };
        digits();
        bool fraction = false;
        if (!behind_point && end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
            fraction = true;
            ++end;
            digits();
        }
        if (!behind_point && end < text_.size() && ascii::lower(text_[end]) == 'e') {
            const bool has_sign =
                end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
            if (digit_at(end + (has_sign ? 2 : 1))) {
                fraction = true;
                end += has_sign ? 2 : 1;
                digits();
            }
        }
        std::string written = text_.substr(at_, end - at_);
        std::erase(written, '_');
        Token& token = add(fraction ? TokenKind::number : TokenKind::integer, written);
        const char* const last = written.data() + written.size();
        const auto read = fraction ? std::from_chars(written.data(), last, token.number)
                                   : std::from_chars(written.data(), last, token.integer);
        run_.require(read.ec == std::errc() && read.ptr == last, "the number ", written,
                     " is too large");
        advance(end - at_);
    }

    /// Returns by how much more brackets are open.
    int read_sign() {
        static constexpr std::string_view signs[] = {
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
        for (const std::string_view sign : signs) {
            if (!has(sign)) continue;
            add(TokenKind::sign, std::string(sign));
            advance(sign.size());
            if (sign.size() > 1) return 0;
            return std::string_view("([{").find(sign) != std::string::npos   ? 1
                   : std::string_view(")]}").find(sign) != std::string::npos ? -1
                                                                             : 0;
        }
        run_.fail("the character '", text_[at_], "' is not expected in a tag");
    }

    Run& run_;
    std::string text_;
    std::size_t at_ = 0;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(Run& run, std::string_view text) {
    return Lexer(run, text).tokens();
}

}  // namespace dlprim::language::jinja
