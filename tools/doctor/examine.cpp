// SPDX-License-Identifier: MIT
// The devices' part of a report.
#include "doctor/examine.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <vector>

namespace dlprim::doctor {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
using Text = std::string;

/// The longest that one piece of work may take, in seconds. Then its process is ended.
constexpr double patience = 60;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A folder that is removed at the end.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::error_code code;
        Text name = (fs::temp_directory_path(code) / "dlprim-doctor-XXXXXX").string();
        if (mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code code;
        if (!path_.empty()) fs::remove_all(path_, code);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

/// Where listing all platforms crashes, lists those of each ICD file alone. Leaves OCL_ICD_VENDORS
/// of this process at a folder of the others. Returns the file that is the cause, or "".
Text leave_out_culprits(const Json& icds, const Text& probe, const fs::path& folder) {
    Text culprit;
    std::vector<fs::path> good;
    for (const Json& file : icds.at("files")) {
        const fs::path path = file.at("file").get<Text>();
        setenv("OCL_ICD_VENDORS", path.c_str(), 1);
        Child child(probe);
        if (child.ask({{"what", "list"}}, patience).contains("crashed"))
            culprit += (culprit.empty() ? "" : ", ") + path.string();
        else
            good.push_back(path);
    }
    std::error_code code;
    for (const fs::path& path : good) fs::create_symlink(path, folder / path.filename(), code);
    setenv("OCL_ICD_VENDORS", folder.c_str(), 1);
    return culprit;
}

/// The self-test of one device.
class DeviceTest {
  public:
    DeviceTest(Child& child, const Json& cases, const Text& device, const ExamineOptions& options)
        : child_(child), cases_(cases), device_(device), options_(options) {}

    Json run() {
        const auto start = Clock::now();
        int done = 0;
        const int total = static_cast<int>(cases_.size());
        for (const Json& one : cases_) {
            if (seconds_since(start) > options_.seconds) break;
            const Text name = one.at("type").get<Text>() + '/' + one.at("name").get<Text>();
            if (options_.progress)
                options_.progress("testing " + device_ + ": " + name, done, total);
            ask(one);
            ++done;
        }
        if (options_.progress) options_.progress("", total, total);
        return {{"cases", done},
                {"unfinished", total - done},
                {"engines", engines_.size()},
                {"right", count("right")},
                {"wrong", count("wrong") + count("crashed")},
                {"failed", count("failed")},
                {"skipped", count("skipped")},
                {"worst_error", worst_},
                {"seconds", seconds_since(start)},
                {"rows", rows_}};
    }

  private:
    void ask(const Json& one) {
        const Json answer = child_.ask({{"what", "test"},
                                        {"device", device_},
                                        {"type", one.at("type")},
                                        {"name", one.at("name")},
                                        {"engines", !options_.quick},
                                        {"gradients", !options_.quick}},
                                       patience);
        if (answer.contains("error")) {
            rows_.push_back({{"operator", one.at("type")},
                             {"case", one.at("name")},
                             {"engine", ""},
                             {"direction", "forward"},
                             {"outcome", answer.contains("crashed") ? "crashed" : "failed"},
                             {"error", 0},
                             {"reason", answer.at("error")}});
            return;
        }
        for (const Json& row : answer.at("rows")) {
            for (const Json& engine : row.at("ran")) engines_.insert(engine.get<Text>());
            if (row.at("outcome") == "right" && row.at("error").is_number())
                worst_ = std::max(worst_, row.at("error").get<double>());
            rows_.push_back(row);
        }
    }

    std::int64_t count(const char* outcome) const {
        return std::count_if(rows_.begin(), rows_.end(),
                             [&](const Json& row) { return row.at("outcome") == outcome; });
    }

    Child& child_;
    const Json& cases_;
    Text device_;
    const ExamineOptions& options_;
    std::set<Text> engines_;
    double worst_ = 0;
    Json rows_ = Json::array();
};

/// Keeps the first case of each operator.
void keep_first_of_each(Json& cases) {
    std::set<Text> seen;
    Json kept = Json::array();
    for (const Json& one : cases)
        if (seen.insert(one.at("type").get<Text>()).second) kept.push_back(one);
    cases = std::move(kept);
}

void examine_device(Json& device, Child& child, const Json& cases, const ExamineOptions& options) {
    const Text id = device.at("id");
    if (options.progress) options.progress("opening " + id, 0, 1);
    const Json traits = child.ask({{"what", "open"}, {"device", id}}, patience);
    device["works"] = !traits.contains("error");
    if (traits.contains("error")) {
        device["error"] = traits.at("error");
        return;
    }
    device["traits"] = traits;
    if (options.progress) options.progress("measuring " + id, 0, 1);
    device["peaks"] = child.ask({{"what", "peaks"}, {"device", id}}, patience);
    const Json trust = child.ask({{"what", "trust"}, {"device", id}}, patience);
    if (!trust.contains("error")) {
        device["checks"] = {{"right", trust.at("right")}, {"unknown", trust.at("unknown")}};
        device["distrusted"] = trust.at("wrong");
    }
    device["self_test"] = DeviceTest(child, cases, id, options).run();
}

}  // namespace

void examine(Json& report, const std::string& probe, const ExamineOptions& options) {
    report["devices"] = Json::array();
    report["library_troubles"] = Json::array();
    report["list_error"] = "";
    report["culprit"] = "";
    if (probe.empty()) {
        report["list_error"] =
            "the program dlprim_doctor_probe is not beside dlprim_doctor, nor in "
            "../libexec/dlprim: install the commands again";
        return;
    }
    const TemporaryFolder folder;
    Child child(probe);
    const Json question{{"what", "list"}, {"device", options.device}};
    Json list = child.ask(question, patience);
    if (list.contains("crashed") && !folder.path().empty() &&
        !report.at("system").at("icd").at("files").empty() &&
        report.at("system").at("loader_error").get<Text>().empty()) {
        report["list_error"] = list.at("error");
        report["culprit"] = leave_out_culprits(report.at("system").at("icd"), probe, folder.path());
        list = child.ask(question, patience);
    }
    if (list.contains("error")) {
        report["list_error"] = list.at("error");
        return;
    }
    report["library_troubles"] = list.at("troubles");
    report["default"] = list.value("default", "");
    Json cases = child.ask({{"what", "cases"}}, patience).value("cases", Json::array());
    if (options.quick) keep_first_of_each(cases);
    for (Json& device : list.at("devices")) {
        examine_device(device, child, cases, options);
        report["devices"].push_back(device);
    }
}

}  // namespace dlprim::doctor
