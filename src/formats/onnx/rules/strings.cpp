// SPDX-License-Identifier: MIT
// Strings: they are computed on the host while the model is imported.
#include "formats/onnx/call.hpp"
#include "formats/onnx/letter_case.hpp"
#include "formats/onnx/regex.hpp"

#include <algorithm>
#include <set>

namespace dlprim::onnx {

namespace {

/// Removes words and changes the case of the others.
void normalize(Call& call) {
    call.ignore("locale");
    const std::string action = call.text("case_change_action", "NONE");
    const bool exact = call.integer("is_case_sensitive", 0) != 0;
    call.check(action == "NONE" || action == "LOWER" || action == "UPPER", "case_change_action '",
               action, "' is none of NONE, LOWER and UPPER");
    const Shape& shape = call.shape(0);
    call.check(shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1), "the input has shape ",
               shape.str(), "; it must be [C] or [1, C]");
    std::set<std::string> stopwords;
    for (const std::string& word : call.texts("stopwords"))
        stopwords.insert(exact ? word : to_lower(word));
    std::vector<std::string> kept;
    for (const std::string& word : call.known_strings(0, "the words")) {
        if (stopwords.count(exact ? word : to_lower(word))) continue;
        kept.push_back(action == "LOWER"   ? to_lower(word)
                       : action == "UPPER" ? to_upper(word)
                                           : word);
    }
    if (kept.empty()) kept.emplace_back();
    const Shape made = shape.with(shape.rank() - 1, std::ssize(kept));
    call.set(0, call.build.strings("", made, kept));
}

void concat_strings(Call& call) {
    const Shape &a = call.shape(0), &b = call.shape(1);
    const Shape shape = broadcast(a, b);
    const std::vector<std::string> left = call.known_strings(0, "strings"),
                                   right = call.known_strings(1, "strings");
    call.build.claim(shape, DType::i64);
    const auto place = [&](const Shape& from, std::int64_t at) {
        std::int64_t result = 0, stride = 1;
        for (int i = 1; i <= from.rank(); ++i) {
            const std::int64_t index = at % shape[-i];
            at /= shape[-i];
            if (from[-i] > 1) result += index * stride;
            stride *= from[-i];
        }
        return static_cast<std::size_t>(result);
    };
    std::vector<std::string> joined;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
        const std::string &front = left[place(a, i)], &back = right[place(b, i)];
        call.build.claim({std::ssize(front) + std::ssize(back)}, DType::u8);
        joined.push_back(front + back);
    }
    call.set(0, call.build.strings("", shape, joined));
}

/// The parts between delimiters; between runs of blanks where there is no delimiter. Behind `most`
/// delimiters the rest is one part.
std::vector<std::string> parts_of(std::string_view text, std::string_view delimiter,
                                  std::int64_t most) {
    std::vector<std::string> parts;
    const bool by_blanks = delimiter.empty();
    const auto skip = [&] {
        while (by_blanks && !text.empty() && ascii::is_space(text.front())) text.remove_prefix(1);
    };
    skip();
    if (text.empty()) return parts;
    for (;;) {
        const auto end =
            by_blanks ? static_cast<std::size_t>(
                            std::find_if(text.begin(), text.end(), ascii::is_space) - text.begin())
                      : std::min(text.find(delimiter), text.size());
        if (end == text.size() || std::ssize(parts) == most) break;
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end + (by_blanks ? 1 : delimiter.size()));
        skip();
        if (by_blanks && text.empty()) return parts;
    }
    parts.emplace_back(text);
    return parts;
}

void split_strings(Call& call) {
    const std::string delimiter = call.text("delimiter", "");
    const std::int64_t most = call.integer("maxsplit", std::int64_t{1} << 60);
    std::vector<std::vector<std::string>> all;
    Ints counts;
    std::size_t longest = 0;
    for (const std::string& text : call.known_strings(0, "strings")) {
        all.push_back(parts_of(text, delimiter, most));
        counts.push_back(std::ssize(all.back()));
        longest = std::max(longest, all.back().size());
    }
    Ints sizes = call.shape(0).to_vector();
    sizes.push_back(static_cast<std::int64_t>(longest));
    const Shape shape(sizes);
    call.build.claim(shape, DType::i64);
    std::vector<std::string> padded;
    for (std::vector<std::string>& parts : all) {
        parts.resize(longest);
        padded.insert(padded.end(), parts.begin(), parts.end());
    }
    call.set(0, call.build.strings("", shape, padded));
    call.set(1, call.build.constant("", host_integers(call.shape(0), counts)));
}

void match(Call& call) {
    const Regex regex(call.text("pattern", ""));
    Ints matches;
    for (const std::string& text : call.known_strings(0, "strings"))
        matches.push_back(regex.matches(text));
    call.set(0, call.build.constant("", host_integers(call.shape(0), matches, DType::boolean)));
}

}  // namespace

std::vector<Rule> string_rules() {
    return {
        {"StringNormalizer", 10, normalize, Rule::Strings::own},
        {"StringConcat", 20, concat_strings, Rule::Strings::own},
        {"StringSplit", 20, split_strings, Rule::Strings::own},
        {"RegexFullMatch", 20, match, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
