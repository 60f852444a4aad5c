// SPDX-License-Identifier: MIT
// RunHistory and metrics.csv.
#include "train/history.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace dlprim {

std::vector<std::string> RunHistory::columns() const {
    std::vector<std::string> names{"epoch", "learning_rate", "train_loss"};
    for (const std::string& metric : metrics) names.push_back("train_" + metric);
    names.emplace_back("test_loss");
    for (const std::string& metric : metrics) names.push_back("test_" + metric);
    names.emplace_back("seconds");
    return names;
}

std::vector<double> RunHistory::row(const EpochMetrics& epoch) const {
    const double none = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> row{static_cast<double>(epoch.epoch), epoch.learning_rate,
                            epoch.train_loss};
    const auto add = [&](std::vector<double> values) {
        values.resize(metrics.size(), none);
        row.insert(row.end(), values.begin(), values.end());
    };
    add(epoch.train);
    row.push_back(tested ? epoch.test_loss : none);
    add(tested ? epoch.test : std::vector<double>());
    row.push_back(epoch.seconds);
    return row;
}

EpochMetrics RunHistory::epoch_of(const std::vector<std::string>& columns,
                                  const std::vector<double>& row) const {
    const auto value = [&](const std::string& name) {
        const auto found = std::find(columns.begin(), columns.end(), name) - columns.begin();
        const auto at = static_cast<std::size_t>(found);
        return at < row.size() ? row[at] : std::numeric_limits<double>::quiet_NaN();
    };
    EpochMetrics epoch;
    const double number = value("epoch");
    epoch.epoch = number >= 0 && number < 1e9 ? static_cast<int>(number) : 0;
    epoch.learning_rate = value("learning_rate");
    epoch.train_loss = value("train_loss");
    epoch.test_loss = value("test_loss");
    epoch.seconds = value("seconds");
    for (const std::string& metric : metrics) {
        epoch.train.push_back(value("train_" + metric));
        epoch.test.push_back(value("test_" + metric));
    }
    return epoch;
}

void write_metrics(const std::string& folder, const RunHistory& history) {
    const std::vector<std::string> columns = history.columns();
    std::string text = cat(join(columns, ","), '\n');
    for (const EpochMetrics& epoch : history.epochs) {
        const std::vector<double> row = history.row(epoch);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool empty = !history.tested && columns[i].rfind("test_", 0) == 0;
            text += cat(i > 0 ? "," : "", empty    ? std::string()
                                          : i == 0 ? cat(epoch.epoch)
                                                   : exact(row[i]));
        }
        text += '\n';
    }
    write_file_atomically(std::filesystem::path(folder) / "metrics.csv", text);
}

void read_metrics(const std::string& folder, RunHistory& history) {
    const auto path = std::filesystem::path(folder) / "metrics.csv";
    if (!std::filesystem::exists(path)) return;
    const std::vector<std::string> lines = split(read_file(path), '\n');
    const std::vector<std::string> columns = split(lines.at(0), ',');
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::vector<std::string> cells = split(lines[i], ',');
        if (cells.size() != columns.size()) continue;
        std::vector<double> row;
        for (const std::string& cell : cells)
            row.push_back(cell.empty() ? std::numeric_limits<double>::quiet_NaN()
                                       : leading_number(cell, 0.0));
        history.epochs.push_back(history.epoch_of(columns, row));
    }
}

}  // namespace dlprim
