// SPDX-License-Identifier: MIT
// Reads of a training configuration what decides the memory of a step.
#include "train_memory.hpp"

#include "common.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace dlprim::tools {

namespace {

using Json = nlohmann::json;

SolverOptions solver_of(const Json& config) {
    const Json given = config.value("solver", Json::object());
    const std::string type = given.value("type", "adam");
    SolverOptions solver;
    solver.kind = type == "sgd"     ? SolverOptions::Kind::sgd
                  : type == "adamw" ? SolverOptions::Kind::adamw
                                    : SolverOptions::Kind::adam;
    solver.momentum = given.value("momentum", 0.0);
    solver.nesterov = given.value("nesterov", false);
    solver.weight_decay = given.value("weight_decay", 0.0);
    solver.clip_norm = given.value("clip_norm", 0.0);
    solver.clip_value = given.value("clip_value", 0.0);
    solver.accumulate = given.value("accumulate", 1);
    solver.loss_scale = given.value("loss_scale", solver.loss_scale);
    solver.guard_loss = true;  // as train() has it
    return solver;
}

NetOptions options_of(const Json& config, const TrainCall& call) {
    NetOptions options;
    options.mode = Mode::training;
    options.batch = config.value("batch", 64);
    const std::string precision = config.value("precision", "fp32");
    options.precision = call.precision.value_or(parse_precision(precision));
    options.precisions = call.precisions;
    return options;
}

}  // namespace

void add_memory_options(CLI::App& app, MemoryOptions& options) {
    app.add_flag("--memory", options.text,
                 "first print what a step will take of the device's memory, by phase and tensor");
    app.add_option("--memory-html", options.html, "draw that over the step, as a page");
}

void report_training_memory(const Context& context, const TrainCall& call,
                            const MemoryOptions& options) {
    if (!options.text && options.html.empty()) return;
    std::ifstream file(call.config);
    const Json config = Json::parse(file, nullptr, false);
    if (!config.is_object() || !config.contains("net") || !config["net"].is_string()) return;
    NetOptions how;
    SolverOptions solver;
    try {
        how = options_of(config, call);
        solver = solver_of(config);
    } catch (const Json::exception&) {
        return;
    }
    const auto folder = std::filesystem::path(call.config).parent_path();
    Net net =
        Net::from_json_file(context, (folder / config["net"].get<std::string>()).string(), how);
    report_memory(net.plan_memory(&solver),
                  call.config + " on " + context.info().str() + ", batch " +
                      std::to_string(how.batch) + ", a training step",
                  options.text, options.html);
}

}  // namespace dlprim::tools
