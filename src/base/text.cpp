// SPDX-License-Identifier: MIT
// Text helpers: numbers, joining, splitting, and the nearest of a list of names.
#include "base/text.hpp"

#include <algorithm>
#include <charconv>

namespace dlprim {
namespace {

using ascii::lower;

/// Longer than any text of six digits, or of all that a double needs.
constexpr std::size_t number_length = 40;

// Edit distance in which a change of case costs nothing and a swap of neighbours costs one.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace

void TextWriter::put(double value) {
    char text[number_length];
    text_.append(text,
                 std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr);
}

void TextWriter::put(long long value) {
    char text[number_length];
    text_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void TextWriter::put(unsigned long long value) {
    char text[number_length];
    text_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string exact(double value) {
    std::string rounded = cat(value);
    double back = 0;
    std::from_chars(rounded.data(), rounded.data() + rounded.size(), back);
    if (back == value || value != value) return rounded;
    char text[number_length];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string fixed(double value, int digits) {
    std::string text(400, '\0');  // 309 digits before the point at most
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                   std::chars_format::fixed, std::clamp(digits, 0, 64));
    text.resize(static_cast<std::size_t>(end.ptr - text.data()));
    return text;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) text += separator;
        text += parts[i];
    }
    return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
    constexpr std::size_t longest = 256;  // nobody misspells more; keeps hostile input cheap
    if (name.size() > longest) return {};
    std::size_t best = std::max<std::size_t>(2, name.size() / 2) + 1;
    std::string found;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > longest) continue;
        const std::size_t d = distance(name, candidate);
        if (d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
    const std::string found = nearest(name, candidates);
    return found.empty() ? std::string() : cat("; did you mean '", found, "'?");
}

}  // namespace dlprim
