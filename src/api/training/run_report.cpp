// SPDX-License-Identifier: MIT
// RunReport.
#include "api/training/run_report.hpp"

#include "api/report/page.hpp"
#include "api/training/mistakes.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "train/settings.hpp"

#include <dlprim/describe.hpp>
#include <dlprim/version.hpp>

#include <algorithm>
#include <exception>

namespace dlprim {

namespace {

using RunJson = nlohmann::ordered_json;
using Rows = std::vector<std::pair<std::string, std::string>>;

constexpr double epoch_seconds = 2;      ///< between two reports of short epochs
constexpr double progress_seconds = 10;  ///< between two reports within an epoch
constexpr double most_share = 0.02;      ///< of the time that writing may take
constexpr std::size_t most_text = 100000;

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

Rows configuration_rows(const TrainConfig& config, const Precision& precision) {
    Rows rows{{"net", config.net},
              {"precision", std::string(name_of(precision))},
              {"epochs", cat(config.epochs)}};
    if (!config.weights.empty()) rows.emplace_back("weights", config.weights);
    if (!config.initial.weights.empty())
        rows.emplace_back("initial.weights", config.initial.weights);
    for (const auto& [key, value] : settings_of(config))
        if (key != "epochs") rows.emplace_back(key, value);
    return rows;
}

Rows version_rows(const DeviceInfo& device) {
    return {{"dlprim", DLPRIM_VERSION},
            {"device", device.name},
            {"kind", std::string(name_of(device.kind))},
            {"platform", device.platform},
            {"vendor", device.vendor},
            {"driver", device.driver},
            {"memory", cat(device.memory_mib, " MiB")}};
}

/// The configuration as it was written, as far as it can be read.
std::string text_of_configuration(const TrainCall& call) {
    std::string text = call.config_text;
    if (text.empty()) text = read_file(call.config);
    if (text.size() > most_text) text = cat(text.substr(0, most_text), "\n...");
    return text;
}

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

RunReport::RunReport(const Parts& parts, Net& net) : parts_(parts) {
    try {
        describe(net);
    } catch (const Error& error) {
        if (parts_.call.note)
            parts_.call.note(cat("the report lacks a description of the run: ", error.what()));
    }
}

void RunReport::describe(Net& net) {
    const TrainConfig& config = parts_.config;
    const DeviceInfo device = parts_.contexts.front().info();
    std::vector<std::string> devices;
    for (const Context& context : parts_.contexts) devices.push_back(context.info().str());
    data_ = {{"title", config.net}, {"device", join(devices, "; ")}, {"status", "running"}};
    const Rows settings = configuration_rows(config, net.options().precision);
    Rows data{{"training set", parts_.feeder.data().source()},
              {"examples", cat(parts_.feeder.size())},
              {"batches in an epoch", cat(parts_.feeder.batches())}};
    if (parts_.evaluator != nullptr) {
        const Feeder& test = parts_.evaluator->feeder();
        data.emplace_back("test set", test.data().source());
        data.emplace_back("examples to test", cat(test.size()));
    }
    const std::vector<std::string>& classes = parts_.feeder.data().classes();
    if (!classes.empty()) data.emplace_back("classes", cat(classes.size()));
    const NetworkDescription network = dlprim::describe(net);
    const Rows versions = version_rows(device);
    data_["tables"] = {table_json("Configuration", settings), table_json("Data", data),
                       table_json("Device and versions", versions)};
    data_["text"] = text_of_configuration(parts_.call);
    data_["network"] = to_json(network);
    RunJson facts = table_json("", settings)["rows"];
    for (const auto& [key, value] : versions)
        if (key != "kind" && key != "vendor") facts.push_back({key, value});
    facts.push_back({"parameters", cat(network.params)});
    facts.push_back({"training examples", cat(parts_.feeder.size())});
    data_["runs"] = RunJson::array();
    data_["runs"].push_back({{"name", config.net}, {"facts", facts}});
}

void RunReport::go_on() {
    try {
        const std::string page = read_file(parts_.folder.file("report.html"), 64u << 20);
        RunJson before = RunJson::parse(report_data(page), nullptr, false);
        if (!before.is_object()) return;
        for (const char* key : {"nodes", "peaks", "memory"})
            if (before.contains(key)) data_[key] = before[key];
        RunJson& judged = before["judged"];
        if (judged.is_object() && judged.value("epoch", RunJson()) == parts_.state.epochs_done)
            data_["judged"] = std::move(judged);
    } catch (const std::exception&) {
        // The next epoch has findings of its own.
    }
}

void RunReport::examine(Net& net) {
    if (examined_ || !parts_.config.report.profile) return;
    examined_ = true;
    try {
        data_["memory"] = to_json(net.plan_memory());
        put_nodes(data_, net.profile(true), parts_.contexts.front().traits());
    } catch (const Error& error) {
        if (parts_.call.note)
            parts_.call.note(cat("the report has no times by operator: ", error.what()));
    }
}

/// Takes the findings of the evaluator, once.
void RunReport::judge() {
    if (judged_epoch_ == 0 || parts_.evaluator == nullptr) return;
    const Findings* findings = parts_.evaluator->findings();
    if (findings == nullptr) return;
    const Dataset& data = parts_.evaluator->feeder().data();
    RunJson judged = findings->json(data.classes());
    judged["epoch"] = judged_epoch_;
    judged["mistakes"] = mistakes_json(findings->mistakes(), data, parts_.config.data.augmentation);
    judged["names"] = data.classes().size() <= 5000 ? RunJson(data.classes()) : RunJson::array();
    data_["judged"] = std::move(judged);
    judged_epoch_ = 0;
}

void RunReport::write() {
    const auto begin = Clock::now();
    try {
        judge();
        const RunHistory& history = parts_.state.history;
        ReportRun run;
        run.columns = history.columns();
        for (const EpochMetrics& epoch : history.epochs) run.rows.push_back(history.row(epoch));
        RunJson curves = to_json(run);
        RunJson& shown = data_["runs"].at(0);
        for (const char* key : {"columns", "rows", "epochs"}) shown[key] = curves[key];
        data_["planned_epochs"] = parts_.config.epochs;
        data_["best_epoch"] = parts_.state.best_epoch;
        const LoaderWaits waits = parts_.feeder.waits();
        data_["waits"] = {{"for_data", short_number(waits.for_data)},
                          {"for_device", short_number(waits.for_device)}};
        data_["written"] = now_ms();
        write_file_atomically(parts_.folder.file("report.html"), page_html(data_));
    } catch (const std::exception& error) {
        if (parts_.call.note) parts_.call.note(cat(error.what(), "; the training goes on"));
    }
    written_ = Clock::now();
    cost_ = seconds_between(begin, *written_);
}

void RunReport::epoch_done(bool end_follows) {
    judged_epoch_ = parts_.state.epochs_done;
    data_.erase("progress");
    if (end_follows) return;
    const double pause = std::max(epoch_seconds, cost_ / most_share);
    if (!written_ || seconds_between(*written_, Clock::now()) >= pause) write();
}

void RunReport::progress(const TrainProgress& progress) {
    const double pause = std::max(progress_seconds, cost_ / most_share);
    if (seconds_between(written_.value_or(begin_), Clock::now()) < pause) return;
    data_["progress"] = {{"epoch", progress.epoch},
                         {"epochs", progress.epochs},
                         {"batch", progress.batch},
                         {"batches", progress.batches},
                         {"loss", short_number(progress.loss)},
                         {"examples_per_second", short_number(progress.images_per_second)}};
    write();
}

void RunReport::end(const std::string& status) {
    data_["status"] = status;
    if (status == "finished") data_.erase("progress");
    write();
}

void RunReport::fail(const std::string& message) {
    if (!written_) return;
    data_["message"] = message;
    end("failed");
}

}  // namespace dlprim
