// SPDX-License-Identifier: MIT
// metrics.csv and report.html.
#include "train/report.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace dlprim {

namespace {

constexpr const char* header =
    "epoch,learning_rate,train_loss,train_accuracy,test_loss,test_accuracy,seconds";

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '&')
            out += "&amp;";
        else
            out += c;
    }
    return out;
}

/// A curve over the epochs as an SVG path. The upper edge is the value `top`, and the lower edge is
/// 0.
std::string curve(const std::vector<double>& values, double top, const char* color) {
    std::string path;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i]) || values[i] < 0) continue;
        const double x = 40 + 520.0 * static_cast<double>(i) /
                                  std::max<double>(1, static_cast<double>(values.size()) - 1);
        path += cat(path.empty() ? "M" : " L", x, ' ', 210 - 190 * std::min(1.0, values[i] / top));
    }
    return cat("<path d='", path, "' fill='none' stroke='", color, "' stroke-width='2'/>");
}

std::string chart(const std::string& title, const std::vector<double>& train,
                  const std::vector<double>& test) {
    double top = 1e-9;
    for (const auto* values : {&train, &test})
        for (double v : *values)
            if (std::isfinite(v)) top = std::max(top, v);
    return cat("<h2>", title,
               "</h2><svg viewBox='0 0 580 230' width='580'><rect x='40' y='20' width='520' "
               "height='190' fill='none' stroke='#ccc'/>",
               "<text x='2' y='26' font-size='11'>", top,
               "</text><text x='28' y='212' font-size='11'>0</text>", curve(train, top, "#1f77b4"),
               curve(test, top, "#d62728"),
               "</svg><p><span style='color:#1f77b4'>training</span> <span "
               "style='color:#d62728'>test</span></p>\n");
}

}  // namespace

void write_metrics(const std::string& folder, const std::vector<EpochMetrics>& epochs) {
    std::string text = cat(header, '\n');
    for (const EpochMetrics& e : epochs) {
        text += cat(e.epoch, ',', exact(e.learning_rate), ',', exact(e.train_loss), ',',
                    exact(e.train_accuracy), ',');
        if (e.test_accuracy >= 0) text += cat(exact(e.test_loss), ',', exact(e.test_accuracy));
        text += cat(e.test_accuracy >= 0 ? "," : ",,", exact(e.seconds), '\n');
    }
    write_file_atomically(std::filesystem::path(folder) / "metrics.csv", text);
}

std::vector<EpochMetrics> read_metrics(const std::string& folder) {
    std::vector<EpochMetrics> epochs;
    const auto path = std::filesystem::path(folder) / "metrics.csv";
    if (!std::filesystem::exists(path)) return epochs;
    const std::vector<std::string> lines = split(read_file(path), '\n');
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::vector<std::string> cells = split(lines[i], ',');
        if (cells.size() != 7) continue;
        const auto value = [&](std::size_t k) {
            return cells[k].empty() ? -1.0 : leading_number(cells[k], 0.0);
        };
        epochs.push_back({static_cast<int>(value(0)), value(1), value(2), value(3), value(4),
                          value(5), value(6)});
    }
    return epochs;
}

void write_report(const std::string& folder, const std::string& title, const std::string& device,
                  const std::vector<EpochMetrics>& epochs) {
    std::vector<double> train_loss, test_loss, train_accuracy, test_accuracy;
    std::string rows;
    for (const EpochMetrics& e : epochs) {
        train_loss.push_back(e.train_loss);
        train_accuracy.push_back(e.train_accuracy);
        test_loss.push_back(e.test_accuracy >= 0 ? e.test_loss : -1);
        test_accuracy.push_back(e.test_accuracy);
        rows += cat("<tr><td>", e.epoch, "</td><td>", e.learning_rate, "</td><td>", e.train_loss,
                    "</td><td>", e.train_accuracy, "</td><td>",
                    e.test_accuracy >= 0 ? cat(e.test_loss) : "", "</td><td>",
                    e.test_accuracy >= 0 ? cat(e.test_accuracy) : "", "</td><td>", e.seconds,
                    "</td></tr>\n");
    }
    const std::string html =
        cat("<!doctype html><meta charset='utf-8'><title>", escaped(title),
            "</title>\n<style>body{font-family:sans-serif;margin:2em}",
            "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em "
            ".6em;text-align:right}</style>\n<h1>",
            escaped(title), "</h1>\n<p>device: ", escaped(device), "</p>\n",
            chart("Loss", train_loss, test_loss), chart("Accuracy", train_accuracy, test_accuracy),
            "<table><tr><th>epoch</th><th>learning rate</th><th>training loss</th><th>training "
            "accuracy</th><th>test loss</th>",
            "<th>test accuracy</th><th>seconds</th></tr>\n", rows, "</table>\n");
    write_file_atomically(std::filesystem::path(folder) / "report.html", html);
}

}  // namespace dlprim
