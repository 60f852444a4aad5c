// SPDX-License-Identifier: MIT
// dlprim_compare: several training runs on one page. Reads the folders that dlprim_train leaves:
// the curves from metrics.csv, and what is known of a run from report.html.
#include "common.hpp"

#include <dlprim/report.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

using namespace dlprim;
namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t most_bytes = 256u << 20;
constexpr std::size_t most_runs = 64;

[[noreturn]] void refuse(const std::string& text) {
    throw Error(ErrorKind::format, text);
}

std::string read(const fs::path& path) {
    std::error_code error;
    if (fs::file_size(path, error) > most_bytes && !error)
        refuse("'" + path.string() + "' is larger than 256 MiB, which no run writes");
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) throw Error(ErrorKind::io, "'" + path.string() + "' cannot be read");
    return text;
}

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
        if (c == ',')
            cells.emplace_back();
        else if (c != '\r')
            cells.back() += c;
    }
    return cells;
}

/// An empty cell is NaN. So are "nan" and "inf" of a run that diverged.
double number_in(const std::string& cell, const std::string& where) {
    if (cell.empty()) return std::numeric_limits<double>::quiet_NaN();
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::quiet_NaN();
    if (error != std::errc() || end != cell.data() + cell.size())
        refuse(where + " holds '" + cell.substr(0, 40) + "', which is no number");
    return value;
}

void read_metrics(const fs::path& path, ReportRun& run) {
    std::istringstream text(read(path));
    std::string line;
    if (!std::getline(text, line) || line.empty())
        refuse("'" + path.string() + "' is empty; the first line of metrics.csv names its columns");
    run.columns = cells_of(line);
    if (run.columns.front() != "epoch")
        refuse("'" + path.string() + "' is no metrics.csv of a run: its first column is '" +
               run.columns.front().substr(0, 40) + "' instead of 'epoch'");
    for (int number = 2; std::getline(text, line); ++number) {
        if (line.empty() || line == "\r") continue;
        const std::vector<std::string> cells = cells_of(line);
        const std::string where = "'" + path.string() + "' line " + std::to_string(number);
        if (cells.size() != run.columns.size())
            refuse(where + " has " + std::to_string(cells.size()) + " of " +
                   std::to_string(run.columns.size()) +
                   " columns: the file is cut short or damaged");
        std::vector<double> row;
        for (const std::string& cell : cells) row.push_back(number_in(cell, where));
        run.rows.push_back(std::move(row));
    }
    if (run.rows.empty())
        refuse("'" + path.string() + "' has no epochs: the first one of that run is not over");
}

/// What report.html says of the run's device and settings. A page that says nothing of them, or was
/// never written, is no error: the curves do not need it.
void read_facts(const fs::path& path, ReportRun& run) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    try {
        const auto data = nlohmann::json::parse(report_data(read(path)));
        for (const auto& fact : data.at("runs").at(0).at("facts"))
            run.facts.emplace_back(fact.at(0).get<std::string>(), fact.at(1).get<std::string>());
    } catch (const std::exception&) {
        run.facts.clear();
        std::fprintf(stderr,
                     "dlprim_compare: warning: '%s' does not say how that run was made; its curves "
                     "are shown without it\n",
                     path.string().c_str());
    }
}

/// Names as short as they can be while they differ: the last parts of the paths.
std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
    for (std::size_t parts = 1;; ++parts) {
        std::vector<std::string> names;
        bool longest = true;
        for (const fs::path& folder : folders) {
            std::vector<std::string> all;
            for (const fs::path& part : folder)
                if (part != "/" && !part.empty()) all.push_back(part.string());
            const std::size_t first = all.size() - std::min(parts, all.size());
            longest = longest && first == 0;
            std::string name;
            for (std::size_t i = first; i < all.size(); ++i)
                name += (name.empty() ? "" : "/") + all[i];
            names.push_back(name.empty() ? folder.string() : name);
        }
        if (longest || std::set<std::string>(names.begin(), names.end()).size() == names.size())
            return names;
    }
}

ReportRun read_run(const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder, error))
        throw Error(ErrorKind::not_found, "folder '" + folder.string() + "' does not exist");
    const fs::path metrics = folder / "metrics.csv";
    if (!fs::is_regular_file(metrics, error))
        throw Error(ErrorKind::not_found, "'" + folder.string() +
                                              "' has no metrics.csv: give folders of dlprim_train "
                                              "(--out) whose first epoch is over");
    ReportRun run;
    read_metrics(metrics, run);
    read_facts(folder / "report.html", run);
    return run;
}

void compare(const std::vector<std::string>& given, const std::string& out) {
    std::vector<fs::path> folders;
    std::vector<ReportRun> runs;
    for (const std::string& name : given) {
        runs.push_back(read_run(name));
        fs::path folder = fs::canonical(name);
        if (std::find(folders.begin(), folders.end(), folder) != folders.end())
            throw Error(ErrorKind::invalid_argument,
                        "folder '" + name + "' is given twice; a run is compared with others");
        folders.push_back(std::move(folder));
    }
    const std::vector<std::string> names = names_of(folders);
    std::string title;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].name = names[i];
        if (i < 4) title += (i > 0 ? ", " : "") + names[i];
    }
    if (runs.size() > 4) title += " and " + std::to_string(runs.size() - 4) + " more";
    ReportPage page(title);
    for (const ReportRun& run : runs) page.add_run(run);
    tools::write_text(out, page.html());
    if (out != "/dev/stdout") std::printf("%zu runs compared in %s\n", runs.size(), out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> folders;
    std::string out = "compare.html";
    CLI::App app("Shows several training runs on one page: curves, best epochs and settings.",
                 "dlprim_compare");
    app.add_option("RUN", folders, "folders of dlprim_train (--out)")
        ->required()
        ->expected(2, static_cast<int>(most_runs));
    app.add_option("--out", out, "the page (compare.html)");
    return tools::run_command(app, argc, argv, [&] { compare(folders, out); });
}
