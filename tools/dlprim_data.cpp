// SPDX-License-Identifier: MIT
// dlprim_data: shows what a training configuration reads: examples by class, shapes, values, broken
// files, and augmented pictures on a contact sheet.
#include "common.hpp"

#include <dlprim/data.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace dlprim;

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string config, sheet, json;
    bool all = false;
    std::int64_t most = 2000, rows = 16, columns = 10;
    double seconds = 0;
};

std::string numbers(const std::vector<double>& values) {
    std::string text;
    const std::size_t shown = std::min<std::size_t>(values.size(), 8);
    for (std::size_t i = 0; i < shown; ++i) {
        char number[32];
        std::snprintf(number, sizeof number, "%.4g", values[i]);
        text += (i > 0 ? ", " : "") + std::string(number);
    }
    if (shown < values.size()) text += ", ... (" + std::to_string(values.size()) + " in all)";
    return text;
}

void print_classes(const DataSummary& summary) {
    const char* const unit = summary.target == "mask" ? "pixels" : "examples";
    std::size_t width = 1;
    for (const std::string& name : summary.classes) width = std::max(width, name.size());
    width = std::min<std::size_t>(width, 40);
    std::printf("  %zu classes:\n", summary.classes.size());
    for (std::size_t i = 0; i < summary.counts.size(); ++i)
        std::printf("    %5zu  %-*.*s  %lld %s\n", i, static_cast<int>(width), 40,
                    summary.classes[i].c_str(), static_cast<long long>(summary.counts[i]), unit);
}

void print(const DataSummary& summary) {
    std::printf("%s: %lld examples of %s\n", summary.role.c_str(),
                static_cast<long long>(summary.examples), summary.source.c_str());
    if (summary.target == "values")
        std::printf("  targets: %lld numbers each\n", static_cast<long long>(summary.target_size));
    else
        print_classes(summary);
    if (summary.pictures && summary.most_height > 0) {
        std::printf("  pictures: %lld to %lld pixels high, %lld to %lld wide\n",
                    static_cast<long long>(summary.least_height),
                    static_cast<long long>(summary.most_height),
                    static_cast<long long>(summary.least_width),
                    static_cast<long long>(summary.most_width));
    }
    std::printf("  the net gets: %s\n", summary.input.str().c_str());
    std::printf("  read: %lld of %lld examples, %lld broken%s\n",
                static_cast<long long>(summary.read), static_cast<long long>(summary.examples),
                static_cast<long long>(summary.broken),
                summary.read < summary.examples ? " (--all reads every one)" : "");
    if (!summary.mean.empty()) {
        std::printf("  values: %.4g to %.4g%s\n", summary.least, summary.most,
                    summary.pictures ? ", where 1 is white" : "");
        std::printf("  mean: %s\n  deviation: %s\n", numbers(summary.mean).c_str(),
                    numbers(summary.deviation).c_str());
    }
    for (const std::string& remark : summary.remarks) std::printf("  note: %s\n", remark.c_str());
    for (const std::string& message : summary.messages)
        std::printf("  broken: %s\n", message.c_str());
}

Json to_json(const DataSummary& summary) {
    Json json{{"role", summary.role},
              {"source", summary.source},
              {"examples", summary.examples},
              {"target", summary.target},
              {"target_size", summary.target_size},
              {"classes", Json::array()},
              {"input", summary.input.to_vector()},
              {"read", summary.read},
              {"broken", summary.broken},
              {"remarks", summary.remarks},
              {"messages", summary.messages}};
    for (std::size_t i = 0; i < summary.counts.size(); ++i)
        json["classes"].push_back({{"name", summary.classes[i]}, {"count", summary.counts[i]}});
    if (summary.pictures && summary.most_height > 0)
        json["pictures"] = {{"height", {summary.least_height, summary.most_height}},
                            {"width", {summary.least_width, summary.most_width}}};
    if (!summary.mean.empty()) {
        json["range"] = {summary.least, summary.most};
        json["mean"] = summary.mean;
        json["deviation"] = summary.deviation;
    }
    return json;
}

void print(const std::string& file, const ContactSheet& sheet) {
    std::printf("contact sheet %s: %lld columns, rows from the top:\n", file.c_str(),
                static_cast<long long>(sheet.columns));
    for (std::size_t i = 0; i < sheet.rows.size(); ++i)
        std::printf("  %3zu  %s\n", i + 1, sheet.rows[i].c_str());
}

void run(const Options& options) {
    const TrainingData data(options.config);
    const std::vector<DataSummary> parts = data.summaries(options.all ? 0 : options.most);
    const bool text = options.json != "-";
    for (const DataSummary& part : parts)
        if (text) print(part);
    Json json{{"parts", Json::array()}};
    for (const DataSummary& part : parts) json["parts"].push_back(to_json(part));
    if (!options.sheet.empty()) {
        const ContactSheet sheet = data.contact_sheet(options.rows, options.columns);
        write_png(options.sheet, sheet.image);
        if (text) print(options.sheet, sheet);
        json["sheet"] = {{"file", options.sheet}, {"columns", sheet.columns}, {"rows", sheet.rows}};
    }
    if (options.seconds > 0) {
        const DataSpeed speed = data.speed(options.seconds);
        const double rate = static_cast<double>(speed.examples) / speed.seconds;
        if (text) std::printf("speed: %.1f examples a second\n", rate);
        json["examples_per_second"] = rate;
    }
    // File names may be in any encoding; what is no UTF-8 is replaced.
    const std::string all = json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
    if (!text)
        std::fputs(all.c_str(), stdout);
    else if (!options.json.empty())
        tools::write_text(options.json, all);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Shows what a training configuration reads.", "dlprim_data");
    app.add_option("CONFIG", options.config, "configuration, JSON")->required();
    app.add_option("--most", options.most,
                   "how many examples of each set are read, chosen by the seed (2000)")
        ->check(CLI::Range(1, 1 << 30));
    app.add_flag("--all", options.all, "read every example, which finds all that are broken");
    app.add_option("--sheet", options.sheet, "write a contact sheet of augmented pictures, PNG");
    app.add_option("--rows", options.rows, "rows of the contact sheet at most, one per class (16)")
        ->check(CLI::Range(1, 1000));
    app.add_option("--columns", options.columns, "pictures in a row of the contact sheet (10)")
        ->check(CLI::Range(1, 1000));
    app.add_option("--speed", options.seconds, "make batches for this many seconds, and count them")
        ->check(CLI::Range(0.01, 1e6));
    app.add_option("--json", options.json,
                   "write what was found as JSON to this file; - prints it");
    return tools::run_command(app, argc, argv, [&] { run(options); });
}
