// SPDX-License-Identifier: MIT
// Text helpers: numbers, joining, splitting, and the nearest of a list of names.
#include "base/text.hpp"

#include "base/synonyms.hpp"

#include <algorithm>
#include <charconv>

namespace dlprim {
namespace {

using ascii::lower;

/// Longer than any number written with six digits or with all the digits that a double needs.
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

// Whether `text` begins with `start`, ignoring case.
bool begins(std::string_view text, std::string_view start) {
    return text.size() >= start.size() &&
           std::equal(start.begin(), start.end(), text.begin(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

// Whether `name` is `full` with some letters left out, but not the first: Conv2D of Convolution2D.
bool abbreviates(std::string_view name, std::string_view full) {
    if (name.empty() || full.empty() || lower(name[0]) != lower(full[0])) return false;
    std::size_t i = 0;
    for (const char c : full)
        if (i < name.size() && lower(c) == lower(name[i])) ++i;
    return i == name.size();
}

// Returns the longest candidate that `name` begins with, else the shortest candidate that `name`
// abbreviates. Names of one or two letters are ignored, since they say too little.
std::string shortened(std::string_view name, std::span<const std::string> candidates) {
    constexpr std::size_t shortest = 3;
    std::string begun, full;
    for (const std::string& candidate : candidates) {
        const std::size_t size = candidate.size();
        if (size >= shortest && size > begun.size() && begins(name, candidate)) begun = candidate;
        if (name.size() >= shortest && (full.empty() || size < full.size()) &&
            abbreviates(name, candidate))
            full = candidate;
    }
    return begun.empty() ? full : begun;
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
    std::string text(400, '\0');  // at most 309 digits before the point
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
    constexpr std::size_t longest = 256;  // no misspelling is longer; keeps hostile input cheap
    if (name.size() > longest) return {};
    const std::size_t limit = std::max<std::size_t>(1, (name.size() + 1) / 3);
    std::size_t best = limit + 1;
    std::string found;
    for (const std::string& candidate : candidates) {
        const std::size_t size = candidate.size();
        if (size > name.size() + limit || name.size() > size + limit) continue;
        const std::size_t d = distance(name, candidate);
        if (d < best) {
            best = d;
            found = candidate;
        }
    }
    return found.empty() ? shortened(name, candidates) : found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
    std::string found = synonym_among(name, candidates);
    if (found.empty()) found = nearest(name, candidates);
    return found.empty() ? std::string() : cat("; did you mean '", found, "'?");
}

}  // namespace dlprim
