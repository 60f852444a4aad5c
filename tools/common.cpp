// SPDX-License-Identifier: MIT
// What the commands share.
#include "common.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <unistd.h>

namespace dlprim::tools {

namespace {

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

int run_command(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), one_line(error.what()).c_str());
        std::fprintf(stderr, "%s -h shows its usage\n", app.get_name().c_str());
        return 2;
    }
    try {
        body();
        return 0;
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "%s: host memory does not suffice\n", app.get_name().c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), one_line(error.what()).c_str());
    }
    return 1;
}

std::vector<std::pair<std::string, std::string>> parse_engines(const std::vector<std::string>& texts) {
    std::vector<std::pair<std::string, std::string>> engines;
    for (const std::string& text : texts) {
        const std::size_t equals = text.rfind('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
            throw Error(ErrorKind::invalid_argument, "--engine takes NODE=ENGINE or TYPE=ENGINE, got '" + text + "'");
        engines.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return engines;
}

void check_precision(const std::string& precision) {
    if (precision == "fp32") return;
    for (const char* known : {"tf32", "fp16", "bf16"})
        if (precision == known)
            throw Error(ErrorKind::unsupported, "precision " + precision + " is not offered by this version; fp32 is");
    throw Error(ErrorKind::invalid_argument, "there is no precision '" + precision + "'; there are fp32, tf32, fp16, bf16");
}

Net open_net(const Context& context, const std::string& path, const NetOptions& options) {
    if (path.size() > 5 && path.substr(path.size() - 5) == ".onnx")
        throw Error(ErrorKind::unsupported, "'" + path + "': this build reads networks as JSON, not ONNX");
    return Net::from_json_file(context, path, options);
}

std::function<void(std::string_view, int, int)> terminal_progress() {
    if (!isatty(STDERR_FILENO)) return {};
    struct State {
        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), last = start;
        bool shown = false;
    };
    auto state = std::make_shared<State>();
    return [state](std::string_view what, int done, int total) {
        const auto now = std::chrono::steady_clock::now();
        if (done >= total) {
            if (state->shown) std::fprintf(stderr, "\r\033[K");
            state->shown = false;
            return;
        }
        if (now - state->start < std::chrono::seconds(1) || now - state->last < std::chrono::milliseconds(200)) return;
        state->last = now;
        state->shown = true;
        std::fprintf(stderr, "\r\033[K[%d/%d] %.*s", done + 1, total, static_cast<int>(what.size()), what.data());
        std::fflush(stderr);
    };
}

}  // namespace dlprim::tools
