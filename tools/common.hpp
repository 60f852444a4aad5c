// SPDX-License-Identifier: MIT
// What the commands share: exit codes, one-line errors, network files, and options that several
// commands have.
#pragma once

#include <dlprim/dlprim.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// The commit from which the commands were built, with "-dirty" appended if files differed, or
/// "unknown" if the sources were not in a repository.
extern const char* const commit;

/// Parses the command line, which includes --version, and runs `body`. Exit codes: 0 for success; 1
/// with one line on stderr that says what is wrong; 2 for wrong usage, with at most three lines.
/// Warnings of the library's log are printed on stderr, one per line, as they occur.
int run_command(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

/// Whether an exception says that the system had no memory, or no thread, at that moment: another
/// start may go better.
bool lacks_resources(const std::exception& error);
/// What an exception says, in words that help where those of the standard library do not.
std::string text_of(const std::exception& error);

/// Adds the option -d, or the argument DEVICE, for the device that a command uses. Also adds
/// --list, which prints the available devices instead of running the command. `placed`: the command
/// also takes names of devices (names_devices()).
void add_device_option(CLI::App& app, std::string& device, bool required = false,
                       bool placed = false);
void add_device_argument(CLI::App& app, std::string& device, bool placed = false);

/// Whether the text binds names to devices, as "a=0:0,b=cpu" does for networks whose operators name
/// their devices.
bool names_devices(const std::string& text);
/// Opens these devices: one context for each device. Throws Error(invalid_argument) for a text that
/// is not of this form, and what Context's constructor throws.
std::vector<NamedDevice> open_named_devices(const std::string& text);

/// The values of --engine and --precision.
struct EngineOptions {
    std::vector<std::pair<std::string, std::string>> engines;
    std::optional<Precision> precision;  ///< the network's, if given
    std::vector<std::pair<std::string, Precision>> precisions;

    void set(NetOptions& how) const;
    /// The precisions for reports: "fp16", or "fp16, fc=fp32".
    std::string precision_text() const;
};
/// Adds these options. Values that do not have their form count as wrong usage.
void add_engine_option(CLI::App& app, EngineOptions& options);
void add_precision_option(CLI::App& app, EngineOptions& options);

/// Adds --memory-limit, which takes MiB, and sets bytes.
void add_memory_limit_option(CLI::App& app, std::uint64_t& bytes);

/// Adds --shape NAME=SIZE,SIZE,..., which may be given again, for shapes of inputs.
void add_shape_option(CLI::App& app, std::map<std::string, Shape>& shapes);

/// Whether the path names an ONNX model, which brings its weights: by its ending.
bool is_onnx(const std::string& path);
/// Opens a network: an ONNX model, or JSON.
Net open_net(const Context& context, const std::string& path, const NetOptions& options);

/// Writes a file atomically. If the path is not a regular file (/dev/stdout, a pipe), writes to it
/// directly. Throws Error(io).
void write_text(const std::string& path, const std::string& text);

/// A progress callback that shows a line on a terminal's stderr when work takes longer than a
/// second or two. Empty if stderr is not a terminal.
std::function<void(std::string_view, int, int)> terminal_progress();

/// The same for commands that take minutes before they have a result. If stderr is not a terminal,
/// it prints a line on standard output when work begins, and then at most one every ten seconds.
std::function<void(std::string_view, int, int)> progress_lines();

}  // namespace dlprim::tools
