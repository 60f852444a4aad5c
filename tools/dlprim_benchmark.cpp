// SPDX-License-Identifier: MIT
// dlprim_benchmark: measures the time of a network's forward pass, backward pass or whole training
// step.
#include "benchmark_support.hpp"
#include "common.hpp"
#include "memory_report.hpp"
#include "placed_benchmark.hpp"
#include "placing.hpp"
#include "untrusted/files.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

using namespace dlprim;
using tools::Clock;
using tools::mib;
using tools::ms_since;
using tools::Spread;
using tools::spread_of;
using Json = nlohmann::ordered_json;

namespace {

struct Options : tools::PlacedBenchmark {
    std::string json, trace, memory_html, html;
    bool adam = false, sgd = false, by_node = false, tune = false, roofline = false, memory = false;
    tools::InputFiles files;
    tools::EngineOptions engines;
};

Json to_json(const Spread& spread) {
    return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

class Benchmark {
  public:
    Benchmark(const Options& options, Clock::time_point start)
        : options_(options), start_(start), context_(options.device), net_(open()) {}

    void run() {
        if (options_.memory || !options_.memory_html.empty() || !options_.html.empty()) {
            memory_ = net_.plan_memory(options_.solver ? &*options_.solver : nullptr);
            tools::report_memory(memory_, title(), options_.memory, options_.memory_html);
        }
        if (!options_.weights.empty()) options_.files.load_weights(net_, options_.weights, true);
        if (options_.solver) solver_ = std::make_unique<Solver>(net_, *options_.solver);
        if (options_.weights.empty() && !tools::is_onnx(options_.net)) net_.initialize();
        net_.prepare();
        inputs_ = tools::make_inputs(net_);
        for (const auto& [name, data] : inputs_) net_.set_input(name, data.data(), data.size());
        if (!net_.has_loss())
            for (const std::string& name : net_.output_gradient_names())
                net_.output_gradient(name).fill(1e-3);
        batch();
        first_batch_ms_ = ms_since(start_);
        for (int i = 1; i < options_.warmup; ++i) batch();
        note_idle_waits();
        measure();
        report();
    }

  private:
    bool training() const { return options_.backward || options_.solver; }

    Net open() const {
        NetOptions how = options_.how;
        how.mode = training() ? Mode::training : Mode::inference;
        how.progress = tools::terminal_progress();
        how.without_losses = !training();
        if (options_.tune) how.tune_seconds = 300;
        if (training())
            how.output_gradients = !options_.files.open_net(context_, options_.net, how).has_loss();
        return options_.files.open_net(context_, options_.net, how);
    }

    /// Looks whether the driver's wait waits: if not, times of batches mean nothing.
    void note_idle_waits() {
        notes_ = net_.notes();
        tools::run_batch(net_, solver_.get(), options_.backward);
        const Event end(context_);
        context_.finish();
        if (end.done()) return;
        notes_.emplace_back(
            "the driver's clFinish() returns before the device is done, so that these times say "
            "nothing about the device; a newer driver may help");
        end.wait();
    }

    double batch() {
        const auto start = Clock::now();
        tools::run_batch(net_, solver_.get(), options_.backward);
        context_.finish();
        return ms_since(start);
    }

    double batch_with_copies() {
        const auto start = Clock::now();
        for (const auto& [name, data] : inputs_) net_.set_input(name, data.data(), data.size());
        batch();
        for (const std::string& name : net_.output_names()) {
            if (!training() && net_.loss_weights().count(name)) continue;
            const Tensor output = net_.output(name);
            std::vector<std::byte> data(output.bytes());
            output.copy_to_host(data.data(), data.size());
        }
        return ms_since(start);
    }

    void measure() {
        std::vector<double> times, with_copies;
        before_ = context_.counters();
        for (int i = 0; i < options_.iterations; ++i) times.push_back(batch());
        after_ = context_.counters();
        peak_bytes_ = net_.planned_peak_bytes();  // for batches whose inputs stay on the device
        for (int i = 0; i < options_.iterations; ++i) with_copies.push_back(batch_with_copies());
        times_ = spread_of(std::move(times));
        with_copies_ = spread_of(std::move(with_copies));
        nodes_ = options_.by_node || !options_.trace.empty() || !options_.html.empty()
                     ? net_.profile(training())
                     : net_.nodes();
    }

    double per_batch(std::uint64_t Counters::*counter) const {
        return static_cast<double>(after_.*counter - before_.*counter) / options_.iterations;
    }

    void report() const {
        // Nominal work: that of the forward pass, and in training three times as much (data and
        // filter gradients), even if some gradients are not wanted.
        double gflop = 0, gbytes = 0;
        for (const NodeReport& node : nodes_) {
            if (node.part == "forward") gflop += training() ? 3 * node.gflop : node.gflop;
            gbytes += node.gbytes;
        }
        const double seconds = times_.median * 1e-3;
        const std::int64_t batch_size = batch_of_net();
        if (!options_.json.empty())
            tools::write_text(options_.json, json(batch_size, gflop, gbytes).dump(1) + '\n');
        if (!options_.trace.empty()) tools::write_text(options_.trace, trace().dump() + '\n');
        if (!options_.html.empty()) tools::write_text(options_.html, page(gflop, gbytes));
        std::printf("%s\n", title().c_str());
        if (options_.by_node) print_nodes();
        std::printf("time a batch      %10.3f ms median, %.3f min, %.3f max\n", times_.median,
                    times_.min, times_.max);
        std::printf("  with copies     %10.3f ms median, %.3f min, %.3f max\n", with_copies_.median,
                    with_copies_.min, with_copies_.max);
        std::printf("first batch       %10.1f ms\n", first_batch_ms_);
        std::printf("work              %10.3f GFLOP, %.1f GFLOP/s, %.1f GB/s\n", gflop,
                    gflop / seconds, gbytes / seconds);
        std::printf("planned peak      %10.1f MiB", mib(peak_bytes_));
        if (net_.planned_setup_peak_bytes() > peak_bytes_)
            std::printf(", %.1f MiB while parameters are packed",
                        mib(net_.planned_setup_peak_bytes()));
        std::printf("\n");
        std::printf(
            "per batch         %10.1f launches, %.1f flushes, %.1f waits, %.1f allocations, "
            "%.1f compiles\n",
            per_batch(&Counters::launches), per_batch(&Counters::flushes),
            per_batch(&Counters::waits), per_batch(&Counters::allocations),
            per_batch(&Counters::compiles));
        for (const std::string& note : notes_) std::printf("note: %s\n", note.c_str());
    }

    std::int64_t batch_of_net() const {
        return net_.input_names().empty() ? 1 : net_.input_shape(net_.input_names().front())[0];
    }

    /// What is measured: "resnet50.json on 0:0 (...), batch 16, inference, fp32".
    std::string title() const {
        return options_.net + " on " + context_.info().str() + ", batch " +
               std::to_string(batch_of_net()) + ", " + mode() + ", " +
               options_.engines.precision_text();
    }

    const char* mode() const { return tools::what_is_measured(options_); }

    void print_nodes() const {
        std::printf("%-44s %-26s %-32s %9s %9s %9s\n", "node", "type", "engine", "ms", "GFLOP/s",
                    "bound ms");
        for (const NodeReport& node : nodes_)
            std::printf("%-44.44s %-26.26s %-32.32s %9.3f %9.1f %9.3f\n", node.name.c_str(),
                        node.type.c_str(), node.engine.c_str(), node.ms,
                        node.ms > 0 ? node.gflop / (node.ms * 1e-3) : 0.0, node.bound_ms);
        std::map<std::string, std::pair<double, double>> by_engine;
        double total = 0;
        for (const NodeReport& node : nodes_) {
            auto& sum = by_engine[node.engine.empty() ? node.type : node.engine];
            sum.first += node.ms;
            sum.second += node.bound_ms;
            total += node.ms;
        }
        for (const auto& [engine, sum] : by_engine)
            std::printf("%-44.44s %9.3f ms %5.1f %%, bound %9.3f ms\n", engine.c_str(), sum.first,
                        100 * sum.first / total, sum.second);
    }

    Json json(std::int64_t batch_size, double gflop, double gbytes) const {
        const double seconds = times_.median * 1e-3;
        Json nodes = Json::array();
        for (const NodeReport& node : nodes_) {
            const double rate = node.ms > 0 ? node.gflop / (node.ms * 1e-3) : 0;
            nodes.push_back({{"name", node.name},
                             {"type", node.type},
                             {"engine", node.engine},
                             {"device", node.device},
                             {"fused", node.fused},
                             {"ms", node.ms},
                             {"gflops", rate},
                             {"bound_ms", node.bound_ms}});
            if (options_.roofline) nodes.back()["gbytes"] = node.gbytes;
        }
        Json result = {{"net", options_.net},
                       {"device", context_.info().name},
                       {"device_id", context_.info().id},
                       {"platform", context_.info().platform},
                       {"driver", context_.info().driver},
                       {"batch", batch_size},
                       {"precision", name_of(options_.how.precision)},
                       {"mode", training() ? "training" : "inference"},
                       {"ms_per_batch", to_json(times_)},
                       {"ms_per_batch_with_copies", to_json(with_copies_)},
                       {"gflop", gflop},
                       {"gflops", gflop / seconds},
                       {"gbytes_per_s", gbytes / seconds},
                       {"planned_peak_bytes", peak_bytes_},
                       {"first_batch_ms", first_batch_ms_},
                       {"per_batch",
                        {{"launches", per_batch(&Counters::launches)},
                         {"waits", per_batch(&Counters::waits)},
                         {"allocations", per_batch(&Counters::allocations)},
                         {"compiles", per_batch(&Counters::compiles)}}},
                       {"nodes", nodes},
                       {"notes", notes_}};
        for (const auto& [what, precision] : options_.how.precisions)
            result["precisions"][what] = name_of(precision);
        if (options_.roofline)
            result["device_peak"] = {{"gflops", context_.traits().gflops},
                                     {"gbytes_per_s", context_.traits().gbytes_per_s}};
        return result;
    }

    std::string page(double gflop, double gbytes) const {
        const auto text = [](const char* format, double value) {
            char buffer[64];
            std::snprintf(buffer, sizeof(buffer), format, value);
            return std::string(buffer);
        };
        const double seconds = times_.median * 1e-3;
        const DeviceInfo device = context_.info();
        ReportPage page(title(), device.str());
        page.add_figure("a batch, median of " + std::to_string(options_.iterations),
                        text("%.4g ms", times_.median));
        page.add_figure("with copies", text("%.4g ms", with_copies_.median));
        page.add_figure("examples a second",
                        text("%.4g", static_cast<double>(batch_of_net()) / seconds));
        page.add_figure("arithmetic", text("%.4g GFLOP/s", gflop / seconds));
        page.add_figure("memory traffic", text("%.4g GB/s", gbytes / seconds));
        page.add_nodes(nodes_, context_.traits());
        page.add_memory(memory_);
        page.add_network(describe(net_));
        page.add_table("Measured",
                       {{"network", options_.net},
                        {"batch", std::to_string(batch_of_net())},
                        {"what", mode()},
                        {"precision", options_.engines.precision_text()},
                        {"fastest batch", text("%.4g ms", times_.min)},
                        {"slowest batch", text("%.4g ms", times_.max)},
                        {"first batch", text("%.4g ms", first_batch_ms_)},
                        {"launches of a batch", text("%.4g", per_batch(&Counters::launches))}});
        page.add_table("Device and versions", {{"dlprim", DLPRIM_VERSION},
                                               {"commit", tools::commit},
                                               {"device", device.name},
                                               {"platform", device.platform},
                                               {"driver", device.driver}});
        std::vector<std::pair<std::string, std::string>> notes;
        for (const std::string& note : notes_) notes.emplace_back("note", note);
        if (!notes.empty()) page.add_table("Notes", notes);
        return page.html();
    }

    Json trace() const {
        Json events = Json::array();
        for (const NodeReport& node : nodes_)
            events.push_back({{"name", node.name},
                              {"cat", node.type},
                              {"ph", "X"},
                              {"ts", node.start_ms * 1e3},
                              {"dur", node.ms * 1e3},
                              {"pid", 1},
                              {"tid", 1},
                              {"args", {{"engine", node.engine}, {"part", node.part}}}});
        return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
    }

    const Options& options_;
    Clock::time_point start_;
    Context context_;
    mutable Net net_;
    std::unique_ptr<Solver> solver_;
    std::map<std::string, std::vector<std::byte>> inputs_;
    std::vector<std::string> notes_;  ///< of the net, and of what was measured
    Counters before_, after_;
    Spread times_, with_copies_;
    std::uint64_t peak_bytes_ = 0;
    double first_batch_ms_ = 0;
    MemoryMap memory_;  ///< if it is shown
    std::vector<NodeReport> nodes_;
};

/// Throws Error(invalid_argument) for options with which a network on several devices cannot be
/// measured.
void check_placed(const Options& options) {
    const bool files = !(options.json.empty() && options.trace.empty() &&
                         options.memory_html.empty() && options.html.empty());
    if (files || options.by_node || options.tune || options.memory ||
        options.how.memory_limit > 0 || options.files.untrusted())
        throw Error(
            ErrorKind::invalid_argument,
            "on several devices a network is timed as a whole: of the options only -b, "
            "-a, -g, -B, -i, -w, --precision, --engine, --place and --device-memory are for "
            "that");
}

void settle(Options& options) {
    options.by_node = options.by_node || options.roofline;
    options.engines.set(options.how);
    if (!options.adam && !options.sgd) return;
    options.solver = SolverOptions{};
    options.solver->kind = options.adam ? SolverOptions::Kind::adam : SolverOptions::Kind::sgd;
    options.solver->learning_rate = 1e-4;
    if (options.sgd) options.solver->momentum = 0.9;
}

void measure(Options& options, Clock::time_point start) {
    settle(options);
    tools::check_placement(options.placement, options.device);
    if (!tools::names_devices(options.device)) return Benchmark(options, start).run();
    check_placed(options);
    if (options.solver) options.solver->loss_scale = 0;
    options.placement.solver = options.solver;
    tools::run_placed_benchmark(options, start);
}

}  // namespace

int main(int argc, char** argv) {
    const auto start = Clock::now();
    Options options;
    CLI::App app("Times a network on a device.", "dlprim_benchmark");
    tools::add_device_argument(app, options.device, true);
    app.add_option("NET", options.net, "network, JSON or ONNX")->required();
    app.add_option("WEIGHTS", options.weights, "parameters, HDF5; what it lacks is initialised");
    app.add_flag("-b", options.backward, "forward and backward");
    auto* adam = app.add_flag("-a", options.adam, "full training step with Adam");
    app.add_flag("-g", options.sgd, "full training step with SGD")->excludes(adam);
    app.add_flag("-t", options.by_node, "time by node and engine");
    app.add_option("-B", options.how.batch, "batch size")->check(CLI::Range(1, 1 << 20));
    app.add_option("-i", options.iterations, "iterations (20)")->check(CLI::Range(1, 1 << 20));
    app.add_option("-w", options.warmup, "warm-up iterations (5)")->check(CLI::Range(1, 1 << 20));
    tools::add_precision_option(app, options.engines);
    tools::add_engine_option(app, options.engines);
    app.add_flag("--tune", options.tune,
                 "first measure candidates where nothing is known, for 5 minutes at most");
    app.add_option("--json", options.json, "write results as JSON");
    app.add_flag("--roofline", options.roofline,
                 "-t, and bytes by node and the device's estimated peak to --json");
    tools::add_placement_options(app, options.placement);
    tools::add_memory_limit_option(app, options.how.memory_limit);
    app.add_flag("--memory", options.memory,
                 "first print what the plan will take of the device's memory, by phase and tensor");
    app.add_option("--memory-html", options.memory_html, "draw that over the step, as a page");
    app.add_option("--html", options.html,
                   "write a page: time by node, roofline, memory and the network");
    app.add_option("--trace", options.trace, "write a Chrome trace");
    options.files.add_option(app);
    return tools::run_command(app, argc, argv, [&] { measure(options, start); });
}
