// SPDX-License-Identifier: MIT
// dlprim_tune: measures engines for a network on a device, and exports the results to other
// machines.
#include "common.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

using namespace dlprim;

namespace {

struct Options {
    std::string net, device, export_to, import_from;
    tools::EngineOptions engines;
    std::int64_t batch = 0;
    double seconds = 600;
    bool training = false;
};

void tune(const Options& options) {
    const Context context(options.device);
    if (!options.import_from.empty())
        std::printf("%zu rows from %s\n", import_tunings(options.import_from),
                    options.import_from.c_str());
    if (!options.net.empty()) {
        NetOptions how;
        how.mode = options.training ? Mode::training : Mode::inference;
        how.batch = options.batch;
        options.engines.set(how);
        how.progress = tools::progress_lines();
        how.without_losses = !options.training;
        how.tune_seconds = options.seconds;
        if (options.training)
            how.output_gradients = !tools::open_net(context, options.net, how).has_loss();
        Net net = tools::open_net(context, options.net, how);
        std::unique_ptr<Solver> solver;
        if (options.training) solver = std::make_unique<Solver>(net, SolverOptions{});
        net.prepare();
        for (const std::string& note : net.notes()) std::printf("%s\n", note.c_str());
    }
    if (!options.export_to.empty())
        std::printf("%zu rows to %s\n", export_tunings(context, options.export_to),
                    options.export_to.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Measures engines for a network on a device, and keeps what it finds.",
                 "dlprim_tune");
    auto* net = app.add_option("NET", options.net, "network, JSON or ONNX");
    tools::add_device_option(app, options.device, true);
    app.add_option("-B", options.batch, "batch size")->check(CLI::Range(1, 1 << 20));
    app.add_flag("--train", options.training, "the training step's problems");
    tools::add_precision_option(app, options.engines);
    app.add_option("--seconds", options.seconds, "stop measuring after so long (600)")
        ->check(CLI::PositiveNumber);
    auto* import =
        app.add_option("--import", options.import_from, "first take over the rows of a file");
    auto* to =
        app.add_option("--export", options.export_to, "at last write this device's rows to a file");
    app.callback([&] {
        if (net->count() + import->count() + to->count() == 0)
            throw CLI::ValidationError("dlprim_tune", "give a NET, --import or --export");
    });
    return tools::run_command(app, argc, argv, [&] { tune(options); });
}
