// SPDX-License-Identifier: MIT
// dlprim_scale: predicts the training step of a network on a described cluster, and says what
// bounds it. docs/scale.md has the model.
#include "common.hpp"

#include <dlprim/scale.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace dlprim;

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string net, cluster, device, json, trace, solver = "adam";
    tools::EngineOptions engines;
    std::int64_t batch = 0;
    ScaleOptions scale;
};

/// The net in training mode. One without a loss gets the gradients of its outputs.
Net open(const Context& context, const Options& options) {
    NetOptions how;
    how.mode = Mode::training;
    how.batch = options.batch;
    options.engines.set(how);
    how.progress = tools::terminal_progress();
    Net net = tools::open_net(context, options.net, how);
    if (net.has_loss()) return net;
    how.output_gradients = true;
    return tools::open_net(context, options.net, how);
}

void print(const ScaleReport& report) {
    std::printf("a shard      %.3f ms forward, %.3f ms backward; update %.3f ms; %s\n",
                report.forward_ms, report.backward_ms, report.update_ms, report.source.c_str());
    std::printf("sums         %.3f MB of each shard, in %d parts; %d shards in a batch\n",
                report.gradient_bytes * 1e-6, static_cast<int>(report.parts.size()), report.shards);
    std::printf("%8s %12s %12s %12s %12s %10s  %s\n", "devices", "step ms", "compute ms",
                "exchange ms", "wait ms", "efficiency", "bound by");
    for (const ScalePoint& point : report.points)
        std::printf("%8d %12.3f %12.3f %12.3f %12.3f %9.1f%%  %s\n", point.devices, point.step_ms,
                    point.compute_ms, point.exchange_ms, point.wait_ms, point.efficiency * 100,
                    point.bound.c_str());
}

Json to_json(const ScaleReport& report, const Options& options) {
    Json points = Json::array();
    for (const ScalePoint& point : report.points)
        points.push_back({{"devices", point.devices},
                          {"step_ms", point.step_ms},
                          {"compute_ms", point.compute_ms},
                          {"exchange_ms", point.exchange_ms},
                          {"wait_ms", point.wait_ms},
                          {"efficiency", point.efficiency},
                          {"bound", point.bound}});
    Json parts = Json::array();
    for (const ScaleReport::Part& part : report.parts)
        parts.push_back({{"bytes", part.bytes}, {"ready_ms", part.ready_ms}});
    return {{"net", options.net},
            {"cluster", options.cluster},
            {"source", report.source},
            {"shards", report.shards},
            {"forward_ms", report.forward_ms},
            {"backward_ms", report.backward_ms},
            {"update_ms", report.update_ms},
            {"sum_bytes", report.gradient_bytes},
            {"parts", parts},
            {"points", points}};
}

void run(Options& options) {
    const Cluster cluster = read_cluster(options.cluster);
    options.scale.measure = !options.device.empty();
    options.scale.solver.kind =
        options.solver == "sgd" ? SolverOptions::Kind::sgd : SolverOptions::Kind::adam;
    if (options.solver == "sgd") options.scale.solver.momentum = 0.9;
    const Context context(options.scale.measure ? options.device : "host");
    Net net = open(context, options);
    const ScaleReport report = predict_step(net, cluster, options.scale);
    if (!options.json.empty())
        tools::write_text(options.json, to_json(report, options).dump(2) + '\n');
    if (!options.trace.empty()) tools::write_text(options.trace, report.trace);
    print(report);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Predicts the training step of a network on a described cluster, and says what bounds it.",
        "dlprim_scale");
    app.add_option("NET", options.net, "network, JSON or ONNX")->required();
    app.add_option("--cluster", options.cluster, "devices, levels and links, JSON")->required();
    tools::add_device_option(app, options.device);
    app.get_option("--device")
        ->description(
            "run and time a shard on this device, in place of what the cluster says of one");
    app.add_option("-B", options.batch, "examples of a shard")->check(CLI::Range(1, 1 << 20));
    app.add_option("--shards", options.scale.shards,
                   "shards of a batch; as many as the cluster has devices if not given")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("-n", options.scale.devices,
                   "numbers of devices, as 1,8,64; powers of two up to all if not given")
        ->delimiter(',')
        ->check(CLI::Range(1, 65536));
    app.add_flag("--direct", options.scale.direct,
                 "all devices exchange with all, in place of level by level");
    app.add_option("--solver", options.solver, "adam or sgd (adam)")
        ->check(CLI::IsMember({"adam", "sgd"}));
    tools::add_precision_option(app, options.engines);
    app.add_option("--json", options.json, "write the prediction");
    app.add_option("--trace", options.trace,
                   "write the step on the last number of devices as a Chrome trace");
    return tools::run_command(app, argc, argv, [&] { run(options); });
}
