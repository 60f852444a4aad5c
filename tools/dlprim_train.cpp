// SPDX-License-Identifier: MIT
// dlprim_train: trains a network from a configuration file.
#include "common.hpp"
#include "train_memory.hpp"

#include <dlprim/trainer.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>
#include <chrono>
#include <cstdio>

using namespace dlprim;

namespace {

/// Shows a progress line on a terminal, and prints one line per epoch everywhere.
class Display {
  public:
    void operator()(const TrainProgress& p) {
        if (p.epoch_done) {
            std::printf("%sepoch %d/%d: loss %.4f, accuracy %.4f", terminal_ ? "\r\033[K" : "",
                        p.epoch, p.epochs, p.loss, p.accuracy);
            if (p.test_accuracy >= 0)
                std::printf(", test loss %.4f, test accuracy %.4f", p.test_loss, p.test_accuracy);
            std::printf(", %.0f images/s\n", p.images_per_second);
            std::fflush(stdout);
            return;
        }
        const auto now = std::chrono::steady_clock::now();
        const auto interval = std::chrono::milliseconds(terminal_ ? 200 : 10000);
        if (now - last_ < interval) return;
        last_ = now;
        std::printf(
            "%sepoch %d/%d: batch %lld/%lld, loss %.4f, accuracy %.4f, rate %.2g, %.0f images/s%s",
            terminal_ ? "\r\033[K" : "", p.epoch, p.epochs, static_cast<long long>(p.batch),
            static_cast<long long>(p.batches), p.loss, p.accuracy, p.learning_rate,
            p.images_per_second, terminal_ ? "" : "\n");
        std::fflush(stdout);
    }

  private:
    bool terminal_ = isatty(STDOUT_FILENO) != 0;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

int main(int argc, char** argv) {
    TrainCall call;
    std::string device;
    std::vector<std::string> precisions;
    tools::MemoryOptions memory;
    CLI::App app("Trains a network from a configuration file.", "dlprim_train");
    app.add_option("CONFIG", call.config, "configuration, JSON")->required();
    tools::add_device_option(app, device);
    app.add_option("--resume", call.resume, "checkpoint to go on from");
    app.add_option("--epochs", call.epochs, "instead of the configuration's")
        ->check(CLI::Range(1, 1000000));
    tools::add_precision_option(app, precisions);
    app.add_option("--out", call.out,
                   "folder for checkpoints, model, metrics and report (training)");
    tools::add_memory_options(app, memory);
    return tools::run_command(app, argc, argv, [&] {
        const tools::Precisions given = tools::parse_precisions(precisions);
        call.precision = given.net;
        call.precisions = given.operators;
        const Context context(device);
        std::printf("device: %s\n", context.info().str().c_str());
        tools::report_training_memory(context, call, memory);
        call.progress = Display();
        call.note = [](std::string_view note) {
            std::printf("note: %.*s\n", static_cast<int>(note.size()), note.data());
        };
        call.planning = tools::terminal_progress();
        const TrainResult result = train(context, call);
        if (result.test_accuracy >= 0) std::printf("test accuracy %.4f\n", result.test_accuracy);
        std::printf("model saved in %s\n", result.model.c_str());
    });
}
