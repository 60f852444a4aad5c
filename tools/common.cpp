// SPDX-License-Identifier: MIT
// What the commands share.
#include "common.hpp"

#include "option_table.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <system_error>

namespace dlprim::tools {

namespace {

/// Makes text fit for a one-line message. Names from files may contain anything, and must not break
/// the line or send control sequences to the terminal.
std::string one_line(std::string text) {
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    std::replace_if(text.begin(), text.end(), is_control, ' ');
    return text;
}

/// Thrown by --list, instead of running the command.
class ListDevices : public CLI::Success {};

constexpr const char* device_help =
    "cpu (the host), P:D, gpu, opencl or part of a name; --list shows those there are";
constexpr const char* placed_help =
    "; or NAME=DEVICE,... for the names that operators of the network give their devices";

void add_list_flag(CLI::App& app) {
    app.add_flag_callback(
        "--list", [] { throw ListDevices(); }, "list the devices there are, and the default one");
}

std::string gib(std::uint32_t mib) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f GiB", mib / 1024.0);
    return text;
}

using Row = std::vector<std::string>;

/// Prints a table whose columns are as wide as their widest cells.
void print_table(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            std::size_t width = 0;
            for (const Row& other : rows) width = std::max(width, other[column].size());
            line += row[column];
            if (column + 1 < row.size()) line.append(width + 2 - row[column].size(), ' ');
        }
        std::printf("%s\n", line.c_str());
    }
}

void list_devices(const std::string& command) {
    // This works even if DLPRIM_DEVICE names none of the devices.
    std::string chosen, complaint;
    try {
        chosen = Context::find().id;
    } catch (const Error& error) {
        complaint = error.what();
    }
    std::vector<Row> rows{{"", "id", "name", "platform", "type", "memory", "driver"}};
    for (const DeviceInfo& info : Context::devices())
        rows.push_back({info.id == chosen ? "*" : "", info.id, one_line(info.name),
                        one_line(info.platform), std::string(name_of(info.kind)),
                        gib(info.memory_mib), one_line(info.driver)});
    print_table(rows);
    if (complaint.empty()) std::printf("* the default device; DLPRIM_DEVICE sets it\n");
    for (const std::string& trouble : Context::troubles())
        std::fprintf(stderr, "%s: warning: %s\n", command.c_str(), one_line(trouble).c_str());
    if (!complaint.empty()) throw Error(ErrorKind::not_found, complaint);
}

/// Prints the library's warnings, each once. Disabled engines are among the notes of the plan
/// (Net::notes), which commands print.
void print_warnings(const std::string& command) {
    auto printed = std::make_shared<std::set<std::string, std::less<>>>();
    set_log([command, printed](LogLevel level, std::string_view line) {
        if (level != LogLevel::warning || line.find(" is disabled: ") != std::string_view::npos ||
            !printed->emplace(line).second)
            return;
        std::fprintf(stderr, "%s: warning: %s\n", command.c_str(),
                     one_line(std::string(line)).c_str());
    });
}

}  // namespace

int run_command(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
    app.set_version_flag("--version",
                         std::string("dlprim " DLPRIM_VERSION " (commit ") + commit + ")");
    app.footer("exit code: 0 success; 1 failure, with one line on stderr; 2 wrong usage");
    if (wants_option_table(argc, argv)) {
        std::fputs(option_table(app).c_str(), stdout);
        return 0;
    }
    std::function<void()> work = body;
    try {
        app.parse(argc, argv);
    } catch (const ListDevices&) {
        work = [&] { list_devices(app.get_name()); };
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), one_line(error.what()).c_str());
        std::fprintf(stderr, "%s -h shows its usage\n", app.get_name().c_str());
        return 2;
    }
    // Going over the file size limit must be reported as an error, also in drivers and on standard
    // output, and must not end the process.
    std::signal(SIGXFSZ, SIG_IGN);
    print_warnings(app.get_name());
    try {
        work();
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            throw Error(ErrorKind::io,
                        std::string("standard output cannot be written: ") + std::strerror(errno));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), one_line(text_of(error)).c_str());
    }
    return 1;
}

bool lacks_resources(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
    const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
    return of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
}

std::string text_of(const std::exception& error) {
    if (!lacks_resources(error)) return error.what();
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return "host memory does not suffice";
    return std::string("the system starts no more threads (") + error.what() +
           "): a limit of memory (ulimit -v), of processes (ulimit -u) or of a control group is "
           "reached";
}

void add_device_option(CLI::App& app, std::string& device, bool required, bool placed) {
    std::string help = device_help;
    if (placed) help += placed_help;
    if (!required) help += "; not given: DLPRIM_DEVICE, else the best one";
    app.add_option("-d,--device", device, help)->required(required)->type_name("DEVICE");
    add_list_flag(app);
}

void add_device_argument(CLI::App& app, std::string& device, bool placed) {
    const std::string help = std::string(device_help) + (placed ? placed_help : "");
    app.add_option("DEVICE", device, help)->required()->type_name("DEVICE");
    add_list_flag(app);
}

bool names_devices(const std::string& text) {
    return text.find('=') != std::string::npos;
}

std::vector<NamedDevice> open_named_devices(const std::string& text) {
    std::vector<NamedDevice> devices;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string item = text.substr(begin, end - begin);
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
            throw Error(ErrorKind::invalid_argument,
                        "'" + item +
                            "' binds no name to a device: -d takes NAME=DEVICE, and more "
                            "of these behind commas");
        const std::string id = Context::find(item.substr(equals + 1)).id;
        const auto same =
            std::find_if(devices.begin(), devices.end(),
                         [&](const NamedDevice& other) { return other.context.info().id == id; });
        devices.push_back(
            {item.substr(0, equals), same != devices.end() ? same->context : Context(id)});
        begin = end + 1;
    }
    return devices;
}

void EngineOptions::set(NetOptions& how) const {
    how.engines = engines;
    how.precision = precision.value_or(how.precision);
    how.precisions = precisions;
}

std::string EngineOptions::precision_text() const {
    std::string all(name_of(precision.value_or(Precision::fp32)));
    for (const auto& [what, own] : precisions) all += ", " + what + "=" + std::string(name_of(own));
    return all;
}

void add_engine_option(CLI::App& app, EngineOptions& options) {
    const auto check = [](const std::string& text) -> std::string {
        const std::size_t equals = text.rfind('=');
        if (equals != std::string::npos && equals > 0 && equals + 1 < text.size()) return "";
        return "takes NODE=ENGINE or TYPE=ENGINE, got '" + text + "'";
    };
    const auto read = [&options](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
            const std::size_t equals = text.rfind('=');
            options.engines.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
    };
    app.add_option_function<std::vector<std::string>>(
           "--engine", read, "NODE=ENGINE or TYPE=ENGINE, may be given again")
        ->type_name("ENGINE")
        ->allow_extra_args(false)
        ->check(CLI::Validator(check, "", "engine"));
}

namespace {

/// "data=1,3,224,224": an input's name and shape.
std::optional<std::pair<std::string, Shape>> parse_shape(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) return std::nullopt;
    std::vector<std::int64_t> sizes;
    const char* at = text.data() + equals + 1;
    const char* const end = text.data() + text.size();
    while (at < end) {
        std::int64_t size = 0;
        const auto [next, code] = std::from_chars(at, end, size);
        if (code != std::errc() || size < 1 || (next < end && *next != ',')) return std::nullopt;
        sizes.push_back(size);
        at = next < end ? next + 1 : next;
    }
    return std::pair(text.substr(0, equals), Shape(sizes));
}

}  // namespace

void add_shape_option(CLI::App& app, std::map<std::string, Shape>& shapes) {
    const auto read = [&shapes](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) shapes.insert(*parse_shape(text));
    };
    const auto check = [](const std::string& text) {
        return parse_shape(text) ? std::string() : text + ": write it as NAME=SIZE,SIZE,...";
    };
    app.add_option_function<std::vector<std::string>>(
           "--shape", read, "an input's shape, NAME=SIZE,SIZE,...: for sizes left open")
        ->type_name("SHAPE")
        ->allow_extra_args(false)
        ->check(CLI::Validator(check, "", "shape"));
}

void add_memory_limit_option(CLI::App& app, std::uint64_t& bytes) {
    app.add_option_function<double>(
           "--memory-limit",
           [&bytes](double mib) { bytes = static_cast<std::uint64_t>(mib * (1 << 20)); },
           "MiB that a step may take; tensors are recomputed in backward where that helps")
        ->check(CLI::Range(1.0, 1e9));
}

void add_precision_option(CLI::App& app, EngineOptions& options) {
    auto nets = std::make_shared<int>(0);
    const auto check = [nets](const std::string& text) -> std::string {
        const std::size_t equals = text.rfind('=');
        const bool of_net = equals == std::string::npos;
        const std::string value = of_net ? text : text.substr(equals + 1);
        bool known = false;
        for (const char* const name : {"fp32", "tf32", "fp16", "bf16"})
            known = known || value == name;
        if (!known || equals == 0)
            return "takes fp32, tf32, fp16 or bf16, or NODE= or TYPE= and one of these, got '" +
                   text + "'";
        if (of_net && ++*nets > 1) return "is given for the whole network twice";
        return "";
    };
    const auto read = [&options](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
            const std::size_t equals = text.rfind('=');
            if (equals == std::string::npos)
                options.precision = parse_precision(text);
            else
                options.precisions.emplace_back(text.substr(0, equals),
                                                parse_precision(text.substr(equals + 1)));
        }
    };
    app.add_option_function<std::vector<std::string>>(
           "--precision", read,
           "of products and activations: fp32 (default), tf32, fp16 or bf16; given again as "
           "NODE=P or TYPE=P, of these alone")
        ->type_name("PRECISION")
        ->allow_extra_args(false)
        ->check(CLI::Validator(check, "", "precision"));
}

bool is_onnx(const std::string& path) {
    constexpr std::string_view ending = ".onnx";
    return path.size() > ending.size() && path.ends_with(ending);
}

Net open_net(const Context& context, const std::string& path, const NetOptions& options) {
    return is_onnx(path) ? Net::from_onnx_file(context, path, options)
                         : Net::from_json_file(context, path, options);
}

void write_text(const std::string& path, const std::string& text) {
    std::error_code code;
    // A link such as /dev/stdout must not be replaced by a file, wherever it leads.
    const auto type = std::filesystem::symlink_status(path, code).type();
    const bool whole = type == std::filesystem::file_type::not_found ||
                       type == std::filesystem::file_type::regular;
    const std::string target = whole ? path + ".tmp-" + std::to_string(getpid()) : path;
    std::ofstream file(target, std::ios::binary);
    file << text;
    file.close();
    const bool good = file && (!whole || std::rename(target.c_str(), path.c_str()) == 0);
    const std::string why = std::strerror(errno);
    if (!good && whole) std::remove(target.c_str());
    if (!good) throw Error(ErrorKind::io, "'" + path + "' cannot be written: " + why);
}

std::function<void(std::string_view, int, int)> terminal_progress() {
    if (!isatty(STDERR_FILENO)) return {};
    struct State {
        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(),
                                              last = start, begin = start;
        bool shown = false;
    };
    auto state = std::make_shared<State>();
    return [state](std::string_view what, int done, int total) {
        const auto now = std::chrono::steady_clock::now();
        if (done == 0) state->begin = now;
        if (done >= total) {
            if (state->shown) std::fprintf(stderr, "\r\033[K");
            state->shown = false;
            return;
        }
        if (now - state->start < std::chrono::seconds(1) ||
            now - state->last < std::chrono::milliseconds(200))
            return;
        state->last = now;
        state->shown = true;
        std::fprintf(stderr, "\r\033[K[%d/%d] %.*s", done + 1, total, static_cast<int>(what.size()),
                     what.data());
        const std::chrono::duration<double> seconds = now - state->begin;
        if (done > 0)
            std::fprintf(stderr, ", %.0f s left",
                         std::ceil(seconds.count() / done * (total - done)));
        std::fflush(stderr);
    };
}

std::function<void(std::string_view, int, int)> progress_lines() {
    if (auto shown = terminal_progress()) return shown;
    using Clock = std::chrono::steady_clock;
    auto next = std::make_shared<Clock::time_point>(Clock::now());
    return [next](std::string_view what, int done, int total) {
        const auto now = Clock::now();
        if (done >= total || now < *next) return;
        *next = now + std::chrono::seconds(10);
        std::printf("[%d/%d] %.*s\n", done + 1, total, static_cast<int>(what.size()), what.data());
        std::fflush(stdout);
    };
}

}  // namespace dlprim::tools
