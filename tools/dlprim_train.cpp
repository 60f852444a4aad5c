// SPDX-License-Identifier: MIT
// dlprim_train: trains a network from a configuration file.
#include "common.hpp"
#include "memory_report.hpp"
#include "placing.hpp"
#include "train_display.hpp"
#include "untrusted/files.hpp"

#include <dlprim/language_training.hpp>
#include <dlprim/processes.hpp>
#include <dlprim/trainer.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace dlprim;

namespace {

/// The signal that asks the run to end, and whether one has asked where it is.
std::atomic<int> ending{0};
std::atomic<bool> asked{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// The first signal lets the run save a checkpoint. The second ends the process at once.
void end_run(int signal) {
    if (ending.exchange(signal) == 0) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void ask_run(int) {
    asked = true;
}

void handle(int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    struct sigaction before {};
    // A shell starts commands in the background with SIGINT ignored, which stays so.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
    ::sigaction(signal, &action, nullptr);
}

/// Prints how the run ended. Returns whether it is finished.
bool report(const TrainResult& result, const std::string& out) {
    if (result.finished) {
        if (result.test_accuracy >= 0) std::printf("test accuracy %.4f\n", result.test_accuracy);
        std::printf("model saved in %s\n", result.model.c_str());
        return true;
    }
    if (result.checkpoint.empty())
        std::printf("stopped before the first step: there is nothing to go on from\n");
    else
        std::printf("stopped; checkpoint: %s; to go on: --out %s --resume latest\n",
                    result.checkpoint.c_str(), out.c_str());
    return false;
}

/// Opens the devices: those that are named, or the one of this process of several. Prints them.
std::vector<Context> open_all(const std::string& names, const Processes& processes,
                              std::string& texts) {
    std::vector<Context> contexts;
    if (processes.size() > 1)
        contexts.push_back(open_device(names, processes));
    else
        contexts = open_devices(names);
    for (const Context& context : contexts) {
        if (processes.rank() == 0) std::printf("device: %s\n", context.info().str().c_str());
        texts += (texts.empty() ? "" : "; ") + context.info().str();
    }
    std::fflush(stdout);
    return contexts;
}

/// The same of devices with names.
std::vector<NamedDevice> open_all_named(const std::string& names, std::string& texts) {
    std::vector<NamedDevice> devices = tools::open_named_devices(names);
    for (const NamedDevice& device : devices) {
        const std::string what = device.context.info().str();
        std::printf("device: %s is %s\n", device.name.c_str(), what.c_str());
        texts += (texts.empty() ? "" : "; ") + what;
    }
    std::fflush(stdout);
    return devices;
}

TrainResult train_language(const std::vector<Context>& contexts,
                           const std::vector<NamedDevice>& named, const TrainCall& call) {
    if (contexts.size() != 1 || !named.empty() || call.processes.size() > 1)
        throw Error(ErrorKind::unsupported,
                    "a language model is trained on one device and by one process: name one");
    return train_language_model(contexts[0], call);
}

Processes join(double deadline_seconds, int& code) {
    try {
        return Processes::join(deadline_seconds);
    } catch (const Error& error) {
        code = exit_code_of(error);
        throw;
    } catch (const std::exception& error) {
        if (tools::lacks_resources(error)) code = restart_code;
        throw;
    }
}

/// Ends the process when another one of the run has failed and this one is still busy.
void end_when_lost(Processes& processes) {
    processes.on_lost([](const RunFailure& failure) {
        std::fprintf(stderr, "dlprim_train: %s\n", failure.text.c_str());
        std::_Exit(failure.exit_code);
    });
}

/// Calls `work`. Where it fails, the other processes hear of it, and the error that is thrown says
/// what ended the run; `code` becomes the exit code.
void run_among(Processes& processes, int& code, const std::function<void()>& work) {
    const auto end = [&](const std::string& text, int own_code) {
        const RunFailure failure = processes.failed(text, own_code);
        code = failure.exit_code;
        throw Error(ErrorKind::device, failure.text);
    };
    try {
        work();
        processes.leave();
    } catch (const Error& error) {
        end(error.what(), exit_code_of(error));
    } catch (const std::exception& error) {
        end(tools::text_of(error), tools::lacks_resources(error) ? restart_code : 1);
    }
}

/// The numbers of "3,1"; empty where the text is something else.
std::vector<int> parse_shares(const std::string& text) {
    std::vector<int> shares;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data();; ++at) {
        int number = 0;
        const auto read = std::from_chars(at, end, number);
        if (read.ec != std::errc() || number < 1) return {};
        shares.push_back(number);
        at = read.ptr;
        if (at == end) return shares;
        if (*at != ',') return {};
    }
}

/// Adds --shares, which takes numbers or "auto".
void add_shares_option(CLI::App& app, TrainCall& call) {
    app.add_option_function<std::string>(
        "--shares",
        [&call](const std::string& text) {
            call.measure_shards = text == "auto";
            if (call.measure_shards) return;
            call.shards_of_devices = parse_shares(text);
            if (call.shards_of_devices.empty())
                throw CLI::ValidationError("--shares", "'" + text +
                                                           "' is neither 'auto' nor numbers of at "
                                                           "least 1 with commas, as 3,1");
        },
        "how many shards of a batch each of several devices computes, as 3,1; 'auto' measures "
        "first how long one takes each; as even as possible if not given");
}

/// Does what --memory and --memory-html ask for, when the run tells of its memory. `devices` is
/// referred to.
void show_memory(TrainCall& call, const std::string& devices, bool text, const std::string& html) {
    const auto title = [&call, &devices](std::int64_t batch) {
        return call.config + " on " + devices + ", batch " + std::to_string(batch) +
               ", a training step";
    };
    call.memory = [title, text, html](const MemoryMap& map) {
        tools::report_memory(map, title(map.batch), text, html);
    };
    call.memory_of_devices = [title, text, html](const PlacedNet& net,
                                                 const std::vector<PlacedNet::DeviceMemory>& all) {
        std::int64_t batch = 0;
        for (const std::string& name : net.input_names())
            if (const Shape shape = net.input_shape(name); shape.rank() > 0)
                batch = std::max(batch, shape[0]);
        tools::report_memory(net, all, title(batch), text, html);
    };
}

}  // namespace

int main(int argc, char** argv) {
    TrainCall call;
    std::string device;
    tools::EngineOptions engines;
    bool memory = false;
    std::string memory_html;
    tools::InputFiles files;
    CLI::App app(
        "Trains a network from a configuration file. SIGINT (Ctrl-C) and SIGTERM save a checkpoint "
        "and end the run, SIGUSR1 prints where it is.",
        "dlprim_train");
    app.add_option("CONFIG", call.config, "configuration, JSON")->required();
    tools::add_device_option(app, device, false, true);
    tools::add_placement_options(app, call.placement);
    add_shares_option(app, call);
    app.add_flag_callback(
        "--no-shared-devices", [&] { call.shared_devices = false; },
        "several ranks on one device are an error, in place of a note");
    app.add_option("--deadline", call.deadline_seconds,
                   "how many seconds devices wait for each other at most (600)")
        ->check(CLI::Range(0.001, 1e9));
    app.add_option("--resume", call.resume,
                   "checkpoint to go on from, or 'latest': the last one in the folder, if any");
    app.add_flag("--replace", call.replace, "remove results of an earlier run from the folder");
    app.add_option("--epochs", call.epochs, "instead of the configuration's")
        ->check(CLI::Range(1, 1000000));
    tools::add_precision_option(app, engines);
    app.add_option("--out", call.out,
                   "folder for checkpoints, model, metrics and report (training)");
    tools::add_memory_limit_option(app, call.memory_limit);
    app.add_flag("--memory", memory,
                 "first print what a step will take of the device's memory, by phase and tensor");
    app.add_option("--memory-html", memory_html, "draw that over the step, as a page");
    app.add_option("--trace", call.trace,
                   "write what devices compute, move and wait for in a few steps after the first "
                   "two, as a Chrome trace");
    app.add_option("--trace-steps", call.trace_steps, "how many steps --trace writes (5)")
        ->check(CLI::Range(1, 100));
    files.add_option(app);
    bool finished = true;
    int failure = 1;
    const auto work = [&] {
        call.precision = engines.precision;
        call.precisions = engines.precisions;
        if (files.untrusted())
            call.read_weights = [&](const std::string& path) { return files.load_tensors(path); };
        handle(SIGINT, end_run);
        handle(SIGTERM, end_run);
        handle(SIGUSR1, ask_run);
        std::string devices;
        tools::check_placement(call.placement, device);
        std::vector<NamedDevice> named;
        std::vector<Context> contexts;
        if (tools::names_devices(device))
            named = open_all_named(device, devices);
        else
            contexts = open_all(device, call.processes, devices);
        const bool language = is_language_training(call.config);
        const auto train_all = [&] {
            if (language) return train_language(contexts, named, call);
            return named.empty() ? train(contexts, call) : train(named, call);
        };
        call.request = [] { return ending != 0 ? TrainRequest::stop : TrainRequest::go_on; };
        if (call.processes.rank() > 0) {  // the first one tells of all
            finished = train_all().finished;
            return;
        }
        tools::TrainDisplay display(language ? "rows" : "images");
        if (memory || !memory_html.empty()) show_memory(call, devices, memory, memory_html);
        call.progress = [&](const TrainProgress& progress) {
            if (asked.exchange(false)) display.ask();
            display.progress(progress);
        };
        call.note = [&](std::string_view note) { display.note(note); };
        call.planning = [shown = tools::terminal_progress()](std::string_view what, int done,
                                                             int total) {
            if (asked.exchange(false) && !what.empty())
                std::printf("%.*s: %d of %d\n", static_cast<int>(what.size()), what.data(), done,
                            total);
            if (shown) shown(what, done, total);
        };
        const TrainResult result = train_all();
        display.clear();
        finished = report(result, call.out);
    };
    const int code = tools::run_command(app, argc, argv, [&] {
        call.processes = join(call.deadline_seconds, failure);
        if (call.processes.size() == 1) return work();
        end_when_lost(call.processes);
        run_among(call.processes, failure, work);
    });
    if (code == 1) return failure;
    return code == 0 && !finished ? 128 + (ending != 0 ? ending.load() : SIGTERM) : code;
}
