// SPDX-License-Identifier: MIT
// What the commands share: exit codes, one-line errors, network files and options common to
// several.
#pragma once

#include <dlprim/dlprim.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// The commit that the commands were built of, "-dirty" behind it where files differed; "unknown"
/// where the sources were no repository.
extern const char* const commit;

/// Parses the command line, of which --version is a part, and runs `body`. Exit codes: 0 success; 1
/// with one line on stderr that says what is wrong; 2 for wrong usage, with at most three lines.
/// Warnings of the library's log are lines of their own on stderr, as they come.
int run_command(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

/// The device that a command works on: -d, or an argument DEVICE; and --list, which prints the
/// devices there are in place of what the command does.
void add_device_option(CLI::App& app, std::string& device, bool required = false);
void add_device_argument(CLI::App& app, std::string& device);

/// --engine and --precision; what is not of their form is wrong usage.
void add_engine_option(CLI::App& app, std::vector<std::string>& engines);
void add_precision_option(CLI::App& app, std::vector<std::string>& precisions);

/// The texts of --engine as the pairs that NetOptions takes.
std::vector<std::pair<std::string, std::string>> parse_engines(
    const std::vector<std::string>& texts);

/// What --precision says: of the network, where it does, and as pairs that NetOptions takes.
struct Precisions {
    std::optional<Precision> net;
    std::vector<std::pair<std::string, Precision>> operators;
    /// "fp16", or "fp16, fc=fp32": for reports.
    std::string text() const;
};
Precisions parse_precisions(const std::vector<std::string>& texts);

/// Opens a network file: JSON by content. Throws Error(unsupported) for ONNX, which is no part of
/// this build.
Net open_net(const Context& context, const std::string& path, const NetOptions& options);

/// Writes a file whole or not at all; straight into what is no file (/dev/stdout, a pipe). Throws
/// Error(io).
void write_text(const std::string& path, const std::string& text);

/// A progress callback that shows a line on a terminal's stderr when work takes over a second or
/// two; empty where stderr is no terminal.
std::function<void(std::string_view, int, int)> terminal_progress();

/// The same for commands that work for minutes before they have a result: where stderr is no
/// terminal, a line on standard output when work begins, and then one every ten seconds at most.
std::function<void(std::string_view, int, int)> progress_lines();

}  // namespace dlprim::tools
