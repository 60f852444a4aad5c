// SPDX-License-Identifier: MIT
// TextRows.
#include "language/text_rows.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"

#include <algorithm>
#include <utility>

namespace dlprim::language {

namespace {

class Reader {
  public:
    explicit Reader(const LanguageModel& model) : model_(model) {}

    TextRow read_line(const JsonView& line) const {
        if (line.find("messages")) return read_chat(line);
        TextRow row;
        if (line.find("prompt")) {
            line.object({"prompt", "completion"});
            add(row, model_.encode(line.at("prompt").text()), false);
            add(row, without_begin(line.at("completion").text()), true);
        } else {
            line.object({"text"});
            add(row, model_.encode(line.at("text").text()), true);
        }
        return ended(std::move(row));
    }
    TextRow read_plain(const std::string& text) const {
        TextRow row;
        add(row, model_.encode(text), true);
        return ended(std::move(row));
    }

  private:
    static void add(TextRow& row, const std::vector<std::int32_t>& tokens, bool counts) {
        row.tokens.insert(row.tokens.end(), tokens.begin(), tokens.end());
        row.counts.resize(row.tokens.size(), counts);
    }
    TextRow ended(TextRow row) const {
        if (const std::int32_t end = model_.end(); end >= 0) add(row, {end}, true);
        return row;
    }
    std::vector<std::int32_t> without_begin(const std::string& text) const {
        std::vector<std::int32_t> tokens = model_.encode(text);
        tokens.erase(tokens.begin(), tokens.begin() + std::ssize(model_.encode("")));
        return tokens;
    }
    /// A turn's tokens are those that the template adds to the chat before it.
    TextRow read_chat(const JsonView& line) const {
        line.object({"messages"});
        std::vector<ChatMessage> messages;
        TextRow row;
        const auto grow = [&](bool answer, bool counts) {
            const std::vector<std::int32_t> all =
                model_.encode_chat(messages, {.answer = answer, .variables = {}});
            if (!std::equal(row.tokens.begin(), row.tokens.end(), all.begin(),
                            all.begin() + std::min(std::ssize(all), std::ssize(row.tokens))))
                line.fail("is a chat whose beginning the model's template writes otherwise");
            row.tokens = all;
            row.counts.resize(all.size(), counts);
        };
        for (const JsonView& message : line.at("messages").array()) {
            message.object({"role", "content"});
            const std::string& role = message.at("role").text();
            const bool answers = role == "assistant";
            if (answers) grow(true, false);
            messages.push_back({role, message.at("content").text()});
            if (answers) grow(false, true);
        }
        return row;
    }

    const LanguageModel& model_;
};

/// Parses a line; messages say which one of the file it is.
TextRow read_numbered(const Reader& reader, std::string_view line, const std::string& path,
                      std::size_t number) {
    try {
        const JsonDocument document(line, path);
        return reader.read_line(document.root());
    } catch (const Error& error) {
        const std::string first = cat(path, ":1"), what = error.what();
        if (what.starts_with(first))
            throw Error(error.kind(), cat(path, ":", number, what.substr(first.size())));
        throw Error(error.kind(), cat(path, ":", number, ": ", what));
    }
}

bool has_label(const TextRow& row) {
    return std::find(row.counts.begin() + !row.counts.empty(), row.counts.end(), true) !=
           row.counts.end();
}

/// All texts behind each other, in rows of `length`.
std::vector<TextRow> packed(const std::vector<TextRow>& texts, std::size_t length) {
    std::vector<TextRow> rows(1);
    for (const TextRow& text : texts)
        for (std::size_t i = 0; i < text.tokens.size(); ++i) {
            if (rows.back().tokens.size() == length) rows.emplace_back();
            rows.back().tokens.push_back(text.tokens[i]);
            rows.back().counts.push_back(text.counts[i]);
        }
    return rows;
}

}  // namespace

TextRows::TextRows(const LanguageModel& model, std::string path, std::int64_t most,
                   std::optional<bool> pack)
    : path_(std::move(path)), most_(most) {
    const Reader reader(model);
    const std::string text = read_file(path_);
    const bool lines = path_.ends_with(".jsonl");
    std::vector<TextRow> texts;
    if (lines) {
        std::size_t number = 0;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            std::string_view line = std::string_view(text).substr(at, end - at);
            if (line.ends_with('\r')) line.remove_suffix(1);
            ++number;
            if (line.find_first_not_of(" \t") != std::string_view::npos)
                texts.push_back(read_numbered(reader, line, path_, number));
            at = end + 1;
        }
    } else {
        texts.push_back(reader.read_plain(text));
    }
    const auto longest = static_cast<std::size_t>(most);
    if (pack.value_or(!lines)) texts = packed(texts, longest);
    for (TextRow& row : texts) {
        if (row.tokens.size() > longest) {
            ++cut_;
            row.tokens.resize(longest);
            row.counts.resize(longest);
        }
        if (has_label(row))
            rows_.push_back(std::move(row));
        else
            ++left_;
    }
    if (rows_.empty())
        fail(ErrorKind::format, "'", path_, "' has no text to train on: no token would count");
}

std::int64_t TextRows::longest() const {
    std::int64_t longest = 0;
    for (const TextRow& row : rows_) longest = std::max(longest, std::ssize(row.tokens));
    return longest;
}

Example TextRows::read(std::int64_t index, const ChoosePart&) const {
    const TextRow& row = rows_[static_cast<std::size_t>(index)];
    Example example;
    example.values.assign(row.tokens.begin(), row.tokens.end());
    example.values.resize(static_cast<std::size_t>(length_));
    example.target.assign(example.values.size(), no_label);
    for (std::size_t i = 1; i < row.tokens.size(); ++i)
        if (row.counts[i]) example.target[i - 1] = example.values[i];
    return example;
}

std::vector<std::string> TextRows::remarks() const {
    std::int64_t labels = 0;
    for (const TextRow& row : rows_)
        labels += std::count(row.counts.begin() + 1, row.counts.end(), true);
    std::string more;
    if (cut_ > 0) more += cat("; ", cut_, " of them were cut to ", most_);
    if (left_ > 0) more += cat("; ", left_, " without a token that counts are left out");
    return {cat(source(), ": ", size(), " rows of up to ", longest(), " tokens, ", labels,
                " of which count", more)};
}

}  // namespace dlprim::language
