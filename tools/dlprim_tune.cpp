// SPDX-License-Identifier: MIT
// dlprim_tune: measures engines for a network on a device, exports the results to other machines,
// fills the caches of compiled kernels ahead of the first use of networks, writes kernels for
// compilers of devices that are not here, and writes what others need to know of a device.
#include "benchmark_support.hpp"
#include "common.hpp"
#include "tune_share.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dlprim;

namespace {

struct Options {
    std::string net, device, export_to, import_from, kernels_to, programs_to, share_to;
    std::vector<std::string> prewarm;
    std::map<std::string, Shape> shapes;
    tools::EngineOptions engines;
    std::int64_t batch = 0;
    double seconds = 600;
    bool training = false;
};

NetOptions net_options(const Options& options, const Context& context, const std::string& path) {
    NetOptions how;
    how.mode = options.training ? Mode::training : Mode::inference;
    how.batch = options.batch;
    how.input_shapes = options.shapes;
    options.engines.set(how);
    how.progress = tools::progress_lines();
    how.without_losses = !options.training;
    if (options.training) how.output_gradients = !tools::open_net(context, path, how).has_loss();
    return how;
}

/// Compiles and checks what the first batch of the network needs, by running one. Some drivers
/// compile a kernel when it is launched first.
void prewarm(const Options& options, const Context& context, const std::string& path) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t before = context.counters().compiles;
    Net net = tools::open_net(context, path, net_options(options, context, path));
    std::unique_ptr<Solver> solver;
    if (options.training) solver = std::make_unique<Solver>(net, SolverOptions{});
    if (!tools::is_onnx(path)) net.initialize();
    for (const auto& [name, data] : tools::make_inputs(net))
        net.set_input(name, data.data(), data.size());
    if (!net.has_loss())
        for (const std::string& name : net.output_gradient_names())
            net.output_gradient(name).fill(0);
    tools::run_batch(net, solver.get(), options.training);
    context.finish();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s: %llu programs compiled in %.1f s\n", path.c_str(),
                static_cast<unsigned long long>(context.counters().compiles - before),
                seconds.count());
}

/// Writes the programs of several networks' plans to a folder: a file for each, and programs.json,
/// which says how they are built and launched.
class KernelFolder {
  public:
    KernelFolder(std::string folder, const Context& context) : folder_(std::move(folder)) {
        const DeviceInfo& info = context.info();
        list_["device"] = {{"id", info.id}, {"name", info.name}, {"driver", info.driver}};
        list_["programs"] = nlohmann::json::array();
        std::filesystem::create_directories(folder_);
    }
    void add(const std::string& net, const std::vector<PlannedProgram>& programs) {
        for (const PlannedProgram& program : programs) {
            auto& kernels = entry_of(program)["kernels"];
            for (const PlannedKernel& kernel : program.kernels)
                kernels.push_back({{"name", kernel.name},
                                   {"net", net},
                                   {"node", kernel.node},
                                   {"type", kernel.type},
                                   {"engine", kernel.engine},
                                   {"part", kernel.part},
                                   {"global", kernel.global},
                                   {"local", kernel.local}});
        }
    }
    void finish() const { tools::write_text(path("programs.json"), list_.dump(1) + "\n"); }

  private:
    std::string path(const std::string& name) const {
        return (std::filesystem::path(folder_) / name).string();
    }
    nlohmann::json& entry_of(const PlannedProgram& program) {
        auto& programs = list_["programs"];
        const auto [at, is_new] =
            known_.try_emplace({program.options, program.source}, programs.size());
        if (!is_new) return programs[at->second];
        std::string name = program.name;
        std::replace(name.begin(), name.end(), '/', '_');
        const std::string file = std::to_string(known_.size()) + "_" + name;
        tools::write_text(path(file), program.source);
        programs.push_back({{"file", file}, {"name", program.name}, {"options", program.options}});
        return programs.back();
    }

    std::string folder_;
    nlohmann::json list_;
    std::map<std::pair<std::string, std::string>, std::size_t> known_;
};

void write_kernels(const Options& options, const Context& context) {
    std::vector<std::string> nets = options.prewarm;
    if (!options.net.empty()) nets.insert(nets.begin(), options.net);
    KernelFolder folder(options.kernels_to, context);
    for (const std::string& path : nets) {
        Net net = tools::open_net(context, path, net_options(options, context, path));
        const SolverOptions solver;
        const auto programs = planned_programs(net, options.training ? &solver : nullptr);
        folder.add(path, programs);
        for (const std::string& note : net.notes()) std::printf("%s\n", note.c_str());
        std::printf("%s: %zu programs to %s\n", path.c_str(), programs.size(),
                    options.kernels_to.c_str());
    }
    folder.finish();
}

void tune(const Options& options) {
    const Context context(options.device);
    if (!options.kernels_to.empty()) return write_kernels(options, context);
    if (!options.import_from.empty())
        std::printf("%zu rows from %s\n", import_tunings(options.import_from),
                    options.import_from.c_str());
    if (!options.net.empty()) {
        NetOptions how = net_options(options, context, options.net);
        how.tune_seconds = options.seconds;
        Net net = tools::open_net(context, options.net, how);
        std::unique_ptr<Solver> solver;
        if (options.training) solver = std::make_unique<Solver>(net, SolverOptions{});
        net.prepare();
        for (const std::string& note : net.notes()) std::printf("%s\n", note.c_str());
    }
    for (const std::string& path : options.prewarm) prewarm(options, context, path);
    if (!options.programs_to.empty())
        std::printf("%zu programs to %s\n", write_programs(context, options.programs_to),
                    options.programs_to.c_str());
    if (!options.export_to.empty())
        std::printf("%zu rows to %s\n", export_tunings(context, options.export_to),
                    options.export_to.c_str());
    if (!options.share_to.empty())
        tools::share_tunings(context, options.share_to, std::min(options.seconds, 120.0));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Measures engines for a network on a device, and keeps what it finds.",
                 "dlprim_tune");
    auto* net = app.add_option("NET", options.net, "network, JSON or ONNX");
    tools::add_device_option(app, options.device, true);
    app.add_option("-B", options.batch, "batch size")->check(CLI::Range(1, 1 << 20));
    tools::add_shape_option(app, options.shapes);
    app.add_flag("--train", options.training, "the problems of the training step");
    tools::add_precision_option(app, options.engines);
    app.add_option("--seconds", options.seconds,
                   "stop measuring after so long (600), and the tests of --share (120)")
        ->check(CLI::PositiveNumber);
    auto* import =
        app.add_option("--import", options.import_from, "first take over the rows of a file");
    auto* warm = app.add_option("--prewarm", options.prewarm,
                                "compile what these networks need, and measure nothing for them")
                     ->type_name("NET ...");
    app.add_option("--write-programs", options.programs_to,
                   "then write what was compiled for them to this folder, for processes whose "
                   "variable DLPRIM_PROGRAMS names it")
        ->type_name("DIR")
        ->needs(warm);
    app.add_option("--write-kernels", options.kernels_to,
                   "write the programs that NET and those after --prewarm would compile to this "
                   "folder, and neither compile nor measure them")
        ->type_name("DIR");
    auto* to =
        app.add_option("--export", options.export_to, "at last write this device's rows to a file");
    auto* share = app.add_option("--share", options.share_to,
                                 "at last write this device's rows, traits and peaks, and what a "
                                 "self-test finds, to a file that fits into an issue");
    app.callback([&] {
        if (net->count() + import->count() + to->count() + warm->count() + share->count() == 0)
            throw CLI::ValidationError("dlprim_tune",
                                       "give a NET, --prewarm, --import, --export or --share");
    });
    return tools::run_command(app, argc, argv, [&] { tune(options); });
}
