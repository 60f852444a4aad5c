// SPDX-License-Identifier: MIT
// dlprim_doctor_probe looks at devices for dlprim_doctor, which starts it: it reads questions as
// lines of JSON from descriptor 3, and writes answers to descriptor 4 (doctor/child.hpp). It is not
// a command for users.
#include "child_process.hpp"

#include <dlprim/dlprim.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

using namespace dlprim;

namespace {

using Json = nlohmann::json;

Json json_of(const DeviceInfo& info) {
    return {{"id", info.id},
            {"name", info.name},
            {"platform", info.platform},
            {"vendor", info.vendor},
            {"driver", info.driver},
            {"type", name_of(info.kind)},
            {"memory_mib", info.memory_mib}};
}

Json json_of(const Traits& traits) {
    return {{"compute_units", traits.compute_units},
            {"vector_width", traits.vector_width},
            {"max_work_group", traits.max_work_group},
            {"local_kib", traits.local_bytes >> 10},
            {"max_alloc_mib", traits.max_alloc_bytes >> 20},
            {"global_mib", traits.global_bytes >> 20},
            {"cache_kib", traits.cache_bytes >> 10},
            {"unified_memory", traits.unified_memory},
            {"fp64", traits.fp64},
            {"fp16", traits.fp16},
            {"subgroup_size", traits.subgroup_size},
            {"wgmma", traits.wgmma},
            {"mma", traits.mma},
            {"matrix_fp16", traits.matrix_fp16},
            {"matrix_bf16", traits.matrix_bf16}};
}

/// The devices that are open in this process.
const Context& opened(const std::string& id) {
    static std::map<std::string, Context> contexts;
    const auto found = contexts.find(id);
    return found != contexts.end() ? found->second
                                   : contexts.emplace(id, Context(id)).first->second;
}

Json list(const std::string& device) {
    Json devices = Json::array();
    if (device.empty()) {
        for (const DeviceInfo& info : Context::devices()) devices.push_back(json_of(info));
    } else {
        devices.push_back(json_of(Context::find(device)));
    }
    Json answer{{"devices", devices}, {"troubles", Context::troubles()}};
    try {
        answer["default"] = Context::find().id;
    } catch (const Error& error) {
        answer["default_error"] = error.what();
    }
    return answer;
}

Json peaks(const std::string& id) {
    const Peaks found = measure_peaks(opened(id));
    return {{"fp32_gflops", found.gflops},
            {"copy_gbytes_per_s", found.gbytes_per_s},
            {"launch_us", found.launch_us},
            {"wait_us", found.wait_us}};
}

Json cases() {
    Json all = Json::array();
    for (const SelfTestCase& one : self_test_cases())
        all.push_back({{"type", one.type}, {"name", one.name}, {"meant", one.meant}});
    return {{"cases", all}};
}

Json test(const Json& question) {
    SelfTestOptions options;
    options.engines = question.value("engines", true);
    options.gradients = question.value("gradients", true);
    Json rows = Json::array();
    for (const SelfTestRow& row : self_test(opened(question.at("device")),
                                            {question.at("type"), question.at("name")}, options))
        rows.push_back({{"operator", row.type},
                        {"case", row.test_case},
                        {"engine", row.engine},
                        {"ran", row.ran},
                        {"direction", row.gradient ? "backward" : "forward"},
                        {"outcome", name_of(row.outcome)},
                        {"error", row.error},
                        {"reason", row.reason}});
    return {{"rows", rows}};
}

Json trust(const std::string& id) {
    int right = 0, unknown = 0;
    Json wrong = Json::array();
    for (const EngineTrust& trust : engine_trust(opened(id))) {
        right += trust.kind == EngineTrust::Kind::right ? 1 : 0;
        unknown += trust.kind == EngineTrust::Kind::unknown ? 1 : 0;
        if (trust.kind == EngineTrust::Kind::wrong)
            wrong.push_back({{"engine", trust.engine}, {"reason", trust.reason}});
    }
    return {{"right", right}, {"unknown", unknown}, {"wrong", wrong}};
}

Json rows(const std::string& id) {
    Json all = Json::array();
    for (const KnownRows& of : known_rows(opened(id)))
        all.push_back({{"operator", of.type},
                       {"measured", of.measured},
                       {"computed", of.computed},
                       {"outdated", of.outdated}});
    return {{"rows", all}};
}

Json answer_to(const Json& question) {
    const std::string what = question.at("what");
    const std::string device = question.value("device", "");
    if (what == "list") return list(device);
    if (what == "open") return json_of(opened(device).traits());
    if (what == "peaks") return peaks(device);
    if (what == "trust") return trust(device);
    if (what == "rows") return rows(device);
    if (what == "cases") return cases();
    if (what == "test") return test(question);
    return {{"error", "unknown question " + what}};
}

std::string answer_line(const std::string& line) {
    Json answer;
    try {
        answer = answer_to(Json::parse(line));
    } catch (const std::exception& error) {
        answer = {{"error", error.what()}};
    }
    // Texts of drivers may be no UTF-8.
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int main() {
    constexpr int questions = 3, answers = 4;
    struct stat status {};
    if (fstat(questions, &status) != 0 || !S_ISFIFO(status.st_mode)) return 2;
    tools::answer_lines(questions, answers, answer_line);
    _exit(0);  // without what drivers do at the end
}
