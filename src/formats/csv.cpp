// SPDX-License-Identifier: MIT
// Reading tables of comma-separated values.
#include "formats/csv.hpp"

#include "base/text.hpp"

#include <deque>

namespace dlprim {

namespace {

class CsvParser {
  public:
    CsvParser(std::string_view text, const std::string& name, char separator)
        : text_(text), name_(name), separator_(separator) {
        if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // the mark of UTF-8
    }
    bool at_end() const { return at_ >= text_.size(); }
    std::int64_t line() const { return line_; }

    /// The fields of the next row. An empty line has none.
    const std::vector<std::string_view>& row() {
        fields_.clear();
        unquoted_.clear();
        if (end_of_line()) return fields_;
        for (;;) {
            fields_.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
            if (at_ < text_.size() && text_[at_] == separator_) {
                ++at_;
                continue;
            }
            if (at_end() || end_of_line()) return fields_;
            fail(ErrorKind::format, name_, ":", line_,
                 ": there is text behind the closing quote of a field; a quote within a field is "
                 "written twice");
        }
    }

  private:
    bool end_of_line() {
        const std::size_t length =
            text_.substr(at_).starts_with("\r\n")                              ? 2
            : at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r') ? 1
                                                                               : 0;
        at_ += length;
        line_ += length > 0;
        return length > 0;
    }
    std::string_view plain() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' &&
               text_[at_] != '\r')
            ++at_;
        return text_.substr(begin, at_ - begin);
    }
    std::string_view quoted() {
        const std::int64_t first_line = line_;
        const std::size_t begin = ++at_;
        bool doubled = false;
        for (; at_ < text_.size(); ++at_) {
            line_ += text_[at_] == '\n';
            if (text_[at_] != '"') continue;
            if (!text_.substr(at_ + 1).starts_with('"')) break;
            doubled = true;
            ++at_;
        }
        if (at_end()) fail(ErrorKind::format, name_, ":", first_line, ": a quote is not closed");
        const std::string_view inner = text_.substr(begin, at_++ - begin);
        if (!doubled) return inner;
        std::string& text = unquoted_.emplace_back();
        for (std::size_t i = 0; i < inner.size(); ++i) {
            text += inner[i];
            i += inner[i] == '"';
        }
        return text;
    }

    std::string_view text_;
    const std::string& name_;
    char separator_;
    std::size_t at_ = 0;
    std::int64_t line_ = 1;
    std::vector<std::string_view> fields_;
    std::deque<std::string> unquoted_;
};

}  // namespace

void read_csv(std::string_view text, const std::string& name, char separator,
              const std::function<void(const std::vector<std::string_view>& fields,
                                       std::int64_t line)>& row) {
    CsvParser parser(text, name, separator);
    while (!parser.at_end()) {
        const std::int64_t line = parser.line();
        const std::vector<std::string_view>& fields = parser.row();
        if (!fields.empty()) row(fields, line);
    }
}

}  // namespace dlprim
