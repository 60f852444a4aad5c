// SPDX-License-Identifier: MIT
// The devices' part of a report.
#include "doctor/examine.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace dlprim::doctor {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
using Text = std::string;

/// The longest that one piece of work may take, in seconds. Then its process is ended.
constexpr double patience = 60;
/// The same for a case of the self-test, for which a slow compiler makes dozens of kernels.
constexpr double patience_with_case = 600;

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

/// The self-test of one device: several processes share the cases, because compilers take most of
/// the time.
class DeviceTest {
  public:
    /// `start`: since when the device's time runs.
    DeviceTest(const Text& probe, const Json& cases, const Text& device,
               const ExamineOptions& options, Clock::time_point start)
        : probe_(probe),
          cases_(cases),
          device_(device),
          options_(options),
          start_(start),
          rows_(cases.size()) {}

    Json run() {
        const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < std::min(cores, 4u); ++i) threads.emplace_back([this] { work(); });
        for (std::thread& thread : threads) thread.join();
        return sum_up();
    }

  private:
    /// Takes cases until there are none or the time is over.
    void work() {
        Child child(probe_);
        while (true) {
            std::size_t mine = 0;
            {
                const std::lock_guard lock(mutex_);
                if (next_ == cases_.size() || seconds_since(start_) > options_.seconds) return;
                mine = next_++;
                if (options_.progress)
                    options_.progress("testing " + device_ + ": " + name_of(cases_[mine]),
                                      static_cast<int>(mine), static_cast<int>(cases_.size()));
            }
            Json rows = ask(child, cases_[mine]);
            const std::lock_guard lock(mutex_);
            rows_[mine] = std::move(rows);
        }
    }

    static Text name_of(const Json& one) {
        return one.at("type").get<Text>() + '/' + one.at("name").get<Text>();
    }

    /// A case that is stopped because the time is over counts as one that was not begun.
    Json ask(Child& child, const Json& one) {
        const Clock::time_point begun = Clock::now();
        const double left = options_.seconds - seconds_since(start_);
        Json answer = child.ask({{"what", "test"},
                                 {"device", device_},
                                 {"type", one.at("type")},
                                 {"name", one.at("name")},
                                 {"engines", !options_.quick},
                                 {"gradients", !options_.quick}},
                                std::clamp(left, 0.0, patience_with_case));
        if (!answer.contains("error")) return answer.at("rows");
        if (answer.contains("late") && left < patience_with_case) {
            const std::lock_guard lock(mutex_);
            stopped_.push_back({{"case", name_of(one)}, {"seconds", seconds_since(begun)}});
            return Json::array();
        }
        return Json::array({{{"operator", one.at("type")},
                             {"case", one.at("name")},
                             {"engine", ""},
                             {"ran", Json::array()},
                             {"direction", "forward"},
                             {"outcome", answer.contains("crashed") ? "crashed" : "failed"},
                             {"error", 0},
                             {"reason", answer.at("error")}}});
    }

    Json sum_up() const {
        Json rows = Json::array();
        std::map<Text, int> counts;
        std::set<Text> engines;
        double worst = 0;
        for (const Json& of_case : rows_) {
            for (const Json& row : of_case) {
                rows.push_back(row);
                const Text outcome = row.at("outcome");
                ++counts[outcome];
                for (const Json& engine : row.at("ran")) engines.insert(engine.get<Text>());
                if (outcome == "right") worst = std::max(worst, row.at("error").get<double>());
            }
        }
        return {{"cases", next_ - stopped_.size()},
                {"unfinished", cases_.size() - next_ + stopped_.size()},
                {"stopped", stopped_},
                {"engines", engines.size()},
                {"right", counts["right"]},
                {"wrong", counts["wrong"]},
                {"crashed", counts["crashed"]},
                {"failed", counts["failed"]},
                {"skipped", counts["skipped"]},
                {"worst_error", worst},
                {"seconds", seconds_since(start_)},
                {"rows", rows}};
    }

    const Text& probe_;
    const Json& cases_;
    const Text device_;
    const ExamineOptions& options_;
    const Clock::time_point start_;
    std::mutex mutex_;
    std::size_t next_ = 0;
    std::vector<Json> rows_;        ///< by case
    Json stopped_ = Json::array();  ///< cases that ran when the time was over
};

/// The first case of each operator, and then the others unless the test is quick: if the time is
/// over before all have run, each operator was tested.
Json in_order(const Json& cases, bool quick, const Text& type) {
    std::set<Text> seen;
    Json ordered = Json::array(), others = Json::array();
    for (const Json& one : cases) {
        if (!type.empty() && one.at("type") != type && one.at("meant") != type) continue;
        (seen.insert(one.at("type").get<Text>()).second ? ordered : others).push_back(one);
    }
    if (!quick)
        for (const Json& one : others) ordered.push_back(one);
    return ordered;
}

void examine_device(Json& device, Child& child, const Text& probe, const Json& cases,
                    const ExamineOptions& options) {
    const Clock::time_point start = Clock::now();
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
    const Json known = child.ask({{"what", "rows"}, {"device", id}}, patience);
    if (!known.contains("error")) device["tuning_rows"] = known.at("rows");
    device["self_test"] = DeviceTest(probe, cases, id, options, start).run();
}

}  // namespace

void examine(Json& report, const std::string& probe, const ExamineOptions& options) {
    report["devices"] = Json::array();
    report["library_troubles"] = Json::array();
    report["list_error"] = "";
    report["culprit"] = "";
    report["usage_error"] = "";
    if (probe.empty()) {
        report["list_error"] =
            "the program dlprim_doctor_probe is not beside dlprim_doctor, nor in "
            "../libexec/dlprim: install the commands again";
        return;
    }
    const TemporaryFolder folder;
    Child child(probe);
    const Json question{{"what", "list"}, {"device", options.device}};
    if (options.progress) options.progress("listing the devices", 0, 1);
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
    const Json all = child.ask({{"what", "cases"}}, patience).value("cases", Json::array());
    const Json cases = in_order(all, options.quick, options.type);
    if (cases.empty() && !options.type.empty()) {
        // The library says which operator may be meant.
        const Json answer = child.ask(
            {{"what", "test"}, {"device", "cpu"}, {"type", options.type}, {"name", ""}}, patience);
        report["usage_error"] = "--operator " + options.type + ": " + answer.value("error", "");
        return;
    }
    for (Json& device : list.at("devices")) {
        examine_device(device, child, probe, cases, options);
        report["devices"].push_back(device);
    }
}

}  // namespace dlprim::doctor
