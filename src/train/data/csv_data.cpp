// SPDX-License-Identifier: MIT
// A data set in a CSV file.
#include "train/data/csv_data.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace dlprim {

namespace {

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && ascii::is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && ascii::is_space(text.back())) text.remove_suffix(1);
    return text;
}

/// The number that the whole text is, or NaN.
double whole_number(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

class CsvData final : public Dataset {
  public:
    CsvData(const std::string& path, const CsvOptions& options)
        : path_(path), options_(options), classes_(options.classes) {
        const std::string text = read_file(path, std::uint64_t{4} << 30);
        read_csv(text, path, options.separator, [&](const auto& fields, std::int64_t line) {
            if (names_.empty())
                read_names(fields);
            else
                read_row(fields, line);
        });
        if (names_.empty())
            fail(ErrorKind::format, "'", path,
                 "' is empty; its first line is to "
                 "have the names of the columns");
        if (lines_.empty())
            fail(ErrorKind::format, "'", path, "' has no rows below the line of names");
        if (!options_.label_is_value) number_classes();
        label_texts_.clear();
    }

    std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
    bool has_pictures() const override { return false; }
    Shape input_shape() const override {
        return Shape{static_cast<std::int64_t>(features_.size())};
    }
    TargetKind target_kind() const override {
        return options_.label_is_value ? TargetKind::values : TargetKind::label;
    }
    std::int64_t target_size() const override {
        return static_cast<std::int64_t>(options_.labels.size());
    }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::int32_t label(std::int64_t index) const override {
        return labels_[static_cast<std::size_t>(index)];
    }
    std::string name(std::int64_t index) const override {
        return cat(path_, ":", lines_[static_cast<std::size_t>(index)]);
    }
    std::string source() const override { return cat("'", path_, "'"); }
    const std::vector<std::string>& features() const { return options_.features; }

    Example read(std::int64_t index, const ChoosePart&) const override {
        if (const auto bad = bad_.find(index); bad != bad_.end())
            fail(ErrorKind::format, name(index), ": ", bad->second);
        Example example;
        const auto at = static_cast<std::size_t>(index);
        const std::size_t width = features_.size(), targets = label_columns_.size();
        example.values.assign(values_.begin() + static_cast<std::ptrdiff_t>(at * width),
                              values_.begin() + static_cast<std::ptrdiff_t>((at + 1) * width));
        if (options_.label_is_value)
            example.target.assign(
                targets_.begin() + static_cast<std::ptrdiff_t>(at * targets),
                targets_.begin() + static_cast<std::ptrdiff_t>((at + 1) * targets));
        else
            example.label = label(index);
        return example;
    }

  private:
    std::size_t column(const std::string& name, std::string_view what) const {
        const auto found = std::find(names_.begin(), names_.end(), name);
        if (found == names_.end())
            fail(ErrorKind::format, "'", path_, "' has no column '", name, "', which data.", what,
                 " names", did_you_mean(name, names_), "; its columns are ",
                 names_.size() > 20 ? cat("'", names_.front(), "' and ", names_.size() - 1, " more")
                                    : join(names_, ", "));
        return static_cast<std::size_t>(found - names_.begin());
    }

    void read_names(const std::vector<std::string_view>& fields) {
        for (const std::string_view field : fields) names_.emplace_back(trimmed(field));
        for (const std::string& name : names_)
            if (std::count(names_.begin(), names_.end(), name) > 1)
                fail(ErrorKind::format, "'", path_, "' has two columns of the name '", name, "'");
        for (const std::string& name : options_.labels)
            label_columns_.push_back(column(name, "label"));
        if (options_.features.empty())
            for (const std::string& name : names_)
                if (std::find(options_.labels.begin(), options_.labels.end(), name) ==
                    options_.labels.end())
                    options_.features.push_back(name);
        for (const std::string& name : options_.features)
            features_.push_back(column(name, "features"));
        if (features_.empty()) fail(ErrorKind::format, "'", path_, "' has no column but the label");
    }

    void read_row(const std::vector<std::string_view>& fields, std::int64_t line) {
        if (fields.size() != names_.size())
            fail(ErrorKind::format, path_, ":", line, ": there are ", fields.size(),
                 " fields, but ", names_.size(), " columns have names");
        const auto index = static_cast<std::int64_t>(lines_.size());
        const auto number = [&](std::size_t at) {
            const double value = whole_number(fields[at]);
            if (!std::isfinite(value))
                bad_.emplace(index, fields[at].empty()
                                        ? cat("column '", names_[at], "' is empty")
                                        : cat("column '", names_[at], "' is '",
                                              fields[at].substr(0, 40), "', no finite number"));
            return static_cast<float>(value);
        };
        lines_.push_back(line);
        for (const std::size_t at : features_) values_.push_back(number(at));
        if (options_.label_is_value) {
            for (const std::size_t at : label_columns_) targets_.push_back(number(at));
            return;
        }
        const std::string_view label = trimmed(fields[label_columns_[0]]);
        if (label.empty())
            bad_.emplace(index, cat("the label, column '", options_.labels[0], "', is missing"));
        label_texts_.emplace_back(label);
    }

    void number_classes() {
        const auto is_number = [](const std::string& text) {
            return text.empty() ||
                   (text.size() <= 6 && std::all_of(text.begin(), text.end(), ascii::is_digit));
        };
        if (classes_.empty() && std::all_of(label_texts_.begin(), label_texts_.end(), is_number)) {
            for (const std::string& text : label_texts_)
                labels_.push_back(leading_number<std::int32_t>(text, 0));
        } else {
            if (classes_.empty()) {
                std::set<std::string> texts(label_texts_.begin(), label_texts_.end());
                texts.erase("");
                classes_.assign(texts.begin(), texts.end());
            }
            std::map<std::string, std::int32_t> numbers;
            for (const std::string& name : classes_)
                numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
            for (std::size_t i = 0; i < label_texts_.size(); ++i) {
                const auto found = numbers.find(label_texts_[i]);
                if (found == numbers.end() && !label_texts_[i].empty())
                    fail(ErrorKind::format, name(static_cast<std::int64_t>(i)), ": label '",
                         label_texts_[i].substr(0, 100), "' is no class of the training set",
                         did_you_mean(label_texts_[i], classes_));
                labels_.push_back(found == numbers.end() ? 0 : found->second);
            }
        }
        const std::set<std::int32_t> kinds(labels_.begin(), labels_.end());
        if (kinds.size() < 2 && !options_.one_class)
            fail(ErrorKind::format, "'", path_, "' has one class alone, '", label_texts_[0],
                 "', in column '", options_.labels[0],
                 "'; to learn numbers set data.target to \"value\"");
    }

    std::string path_;
    CsvOptions options_;
    std::vector<std::string> names_, classes_, label_texts_;
    std::vector<std::size_t> features_, label_columns_;
    std::vector<float> values_, targets_;
    std::vector<std::int32_t> labels_;
    std::vector<std::int64_t> lines_;
    std::map<std::int64_t, std::string> bad_;  ///< rows that are no examples, and why
};

}  // namespace

std::unique_ptr<Dataset> open_csv(const std::string& path, const CsvOptions& options) {
    return std::make_unique<CsvData>(path, options);
}

const std::vector<std::string>& csv_features(const Dataset& data) {
    return dynamic_cast<const CsvData&>(data).features();
}

}  // namespace dlprim
