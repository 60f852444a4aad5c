// SPDX-License-Identifier: MIT
// report.html.
#include "train/report.hpp"

#include "base/env.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

namespace dlprim {

namespace {

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

/// A column's name as a person writes it.
std::string spoken(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name.rfind("train ", 0) == 0 ? "training " + name.substr(6) : name;
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

void write_report(const std::string& folder, const RunReport& report) {
    const RunHistory& history = report.history;
    const std::vector<std::string> columns = history.columns();
    const bool judged = !history.metrics.empty();
    std::vector<double> train_loss, test_loss, train_metric, test_metric;
    std::string head, rows;
    for (const std::string& column : columns) head += cat("<th>", escaped(spoken(column)), "</th>");
    for (const EpochMetrics& epoch : history.epochs) {
        train_loss.push_back(epoch.train_loss);
        test_loss.push_back(history.tested ? epoch.test_loss : -1);
        train_metric.push_back(judged ? epoch.train.at(0) : -1);
        test_metric.push_back(judged && history.tested ? epoch.test.at(0) : -1);
        rows += "<tr>";
        const std::vector<double> row = history.row(epoch);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool empty = !history.tested && columns[i].rfind("test_", 0) == 0;
            rows += cat("<td>", empty ? std::string() : cat(row[i]), "</td>");
        }
        rows += "</tr>\n";
    }
    const std::string html =
        cat("<!doctype html><meta charset='utf-8'><title>", escaped(report.title),
            "</title>\n<style>body{font-family:sans-serif;margin:2em}",
            "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em "
            ".6em;text-align:right}</style>\n<h1>",
            escaped(report.title), "</h1>\n<p>device: ", escaped(report.device), "</p>\n",
            chart("Loss", train_loss, test_loss),
            judged ? chart(escaped(spoken(history.metrics[0])), train_metric, test_metric) : "",
            "<table><tr>", head, "</tr>\n", rows, "</table>\n");
    write_file_atomically(std::filesystem::path(folder) / "report.html", html);
}

}  // namespace dlprim
