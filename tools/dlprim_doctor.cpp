// SPDX-License-Identifier: MIT
// dlprim_doctor: what this machine offers the library, whether it works, and what to do about what
// does not. It is not linked with the library: doctor/child.hpp says why.
#include "doctor/advice.hpp"
#include "doctor/examine.hpp"
#include "doctor/progress.hpp"
#include "doctor/system.hpp"
#include "doctor/text.hpp"
#include "option_table.hpp"

#include <dlprim/version.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace dlprim::tools {
extern const char* const commit;
}

namespace {

using dlprim::doctor::Json;

struct Arguments {
    std::string device, json, type;
    bool quick = false;
    double seconds = 0;  ///< 0: the default
};

Json examine_all(const Arguments& arguments) {
    using namespace dlprim::doctor;
    Json report{{"version", DLPRIM_VERSION},
                {"commit", dlprim::tools::commit},
                {"asked", arguments.device}};
    report["system"] = {{"distribution", distribution()},
                        {"loader_error", why_not_loaded("libOpenCL.so.1")},
                        {"icd", icd_files()},
                        {"device_files", device_files()},
                        {"cards", graphics_cards()},
                        {"environment", environment()}};
    ExamineOptions options;
    options.device = arguments.device;
    options.quick = arguments.quick;
    options.type = arguments.type;
    options.seconds = arguments.seconds > 0 ? arguments.seconds : arguments.quick ? 60 : 120;
    {
        Progress progress;
        options.progress = [&](const std::string& what, int done, int total) {
            progress.show(what, done, total);
        };
        examine(report, dlprim::tools::find_program("dlprim_doctor_probe"), options);
    }
    report["system"]["storage"] = storage();
    judge(report);
    return report;
}

std::string cannot_write(const std::string& path) {
    return "'" + path + "' cannot be written: " + std::strerror(errno);
}

/// Writes the text whole or not at all; directly where the path is no regular file (a pipe, say).
/// Returns why it could not, or empty.
std::string write_file(const std::string& path, const std::string& text) {
    std::error_code code;
    // A link such as /dev/stdout must not be replaced by a file, wherever it leads.
    const auto type = std::filesystem::symlink_status(path, code).type();
    const bool whole = type == std::filesystem::file_type::not_found ||
                       type == std::filesystem::file_type::regular;
    const std::string target = whole ? path + ".tmp-" + std::to_string(getpid()) : path;
    std::ofstream file(target, std::ios::binary);
    file << text;
    file.close();
    if (file && (!whole || std::rename(target.c_str(), path.c_str()) == 0)) return {};
    const std::string why = cannot_write(path);
    if (whole) std::remove(target.c_str());
    return why;
}

/// Why the file cannot be written, as far as its folder shows, or empty.
std::string no_folder_for(const std::string& path) {
    auto folder = std::filesystem::path(path).parent_path();
    if (folder.empty()) folder = ".";
    return access(folder.c_str(), X_OK) == 0 ? "" : cannot_write(path);
}

int run(const Arguments& arguments) {
    std::signal(SIGXFSZ, SIG_IGN);
    const bool to_file = !arguments.json.empty() && arguments.json != "-";
    // The report takes minutes, so a wrong path is better known now.
    if (const std::string why = to_file ? no_folder_for(arguments.json) : ""; !why.empty())
        throw std::runtime_error(why);
    const Json report = examine_all(arguments);
    if (const std::string usage = report.at("usage_error"); !usage.empty()) {
        std::fprintf(stderr, "dlprim_doctor: %s\n", usage.c_str());
        return 2;
    }
    const std::string json = report.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
    std::string trouble;
    if (to_file) trouble = write_file(arguments.json, json);
    std::fputs(arguments.json == "-" ? json.c_str() : dlprim::doctor::text_of(report).c_str(),
               stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        trouble = std::string("standard output cannot be written: ") + std::strerror(errno);
    if (!trouble.empty()) std::fprintf(stderr, "dlprim_doctor: %s\n", trouble.c_str());
    return trouble.empty() && report.at("ok") ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Looks at the devices of this machine, measures and tests them, and says what to do "
        "about what is wrong. The report fits into an issue.",
        "dlprim_doctor");
    Arguments arguments;
    app.add_option("-d,--device", arguments.device,
                   "only this device: cpu (the host), P:D, gpu, opencl or part of a name")
        ->type_name("DEVICE");
    app.add_option("--json", arguments.json, "write the report as JSON to this file; - prints it");
    app.add_flag("--quick", arguments.quick,
                 "test one case of each operator with the engines that the library chooses");
    app.add_option("--operator", arguments.type, "test only this type of operator: Convolution");
    app.add_option("--seconds", arguments.seconds, "the most for a device (120; with --quick 60)")
        ->check(CLI::Range(1.0, 86400.0));
    app.set_version_flag("--version", std::string("dlprim " DLPRIM_VERSION " (commit ") +
                                          dlprim::tools::commit + ")");
    app.footer(
        "exit code: 0 a device works and no engine is wrong or crashes; 1 otherwise; 2 wrong "
        "usage");
    if (dlprim::tools::wants_option_table(argc, argv)) {
        std::fputs(dlprim::tools::option_table(app).c_str(), stdout);
        return 0;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::fprintf(stderr, "dlprim_doctor: %s\ndlprim_doctor -h shows its usage\n", error.what());
        return 2;
    }
    try {
        return run(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dlprim_doctor: %s\n", error.what());
        return 1;
    }
}
