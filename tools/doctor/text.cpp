// SPDX-License-Identifier: MIT
// The text of a report.
#include "doctor/text.hpp"

#include "doctor/printable.hpp"

#include <cstdio>
#include <map>
#include <vector>

namespace dlprim::doctor {

namespace {

using Text = std::string;

Text number(double value, const char* format = "%.1f") {
    char text[64];
    std::snprintf(text, sizeof(text), format, value);
    return text;
}

Text bytes_of(double bytes) {
    const char* const units[] = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit < 3) {
        bytes /= 1024;
        ++unit;
    }
    return number(bytes, unit == 0 ? "%.0f " : "%.1f ") + units[unit];
}

class Report {
  public:
    explicit Report(const Json& report) : report_(report), system_(report.at("system")) {}

    Text str() {
        out_ = "dlprim_doctor: " + printable(report_.at("summary").get<Text>()) + "\n\n";
        line("dlprim " + report_.at("version").get<Text>() + " (commit " +
             report_.at("commit").get<Text>() + ")");
        line(system_.at("distribution").at("name").get<Text>() + ", " +
             system_.at("distribution").at("kernel").get<Text>());
        troubles();
        platforms();
        for (const Json& device : report_.at("devices")) one_device(device);
        storage();
        environment();
        return std::move(out_);
    }

  private:
    void line(const Text& text) { out_ += printable(text) + '\n'; }
    void heading(const Text& text) { out_ += '\n' + printable(text) + '\n'; }

    void troubles() {
        if (report_.at("troubles").empty()) return;
        heading("What to do");
        std::size_t shown = 0;
        for (const Json& trouble : report_.at("troubles")) {
            constexpr std::size_t most = 30;
            if (++shown > most) {
                line("  and " + std::to_string(report_.at("troubles").size() - most) +
                     " more, which --json lists");
                break;
            }
            line("  * " + trouble.at("what").get<Text>());
            if (const Text advice = trouble.at("advice"); !advice.empty()) line("      " + advice);
        }
    }

    void platforms() {
        const Json& icds = system_.at("icd");
        heading("OpenCL");
        const Text loader = system_.at("loader_error");
        line("  loader          " + (loader.empty() ? Text("loads") : loader));
        line("  ICD folder      " + icds.at("folder").get<Text>() +
             (icds.at("exists") ? "" : " (is not there)"));
        for (const Json& file : icds.at("files")) {
            const Text error = file.at("error");
            line("  " + file.at("file").get<Text>() + ": " + file.at("library").get<Text>() +
                 (error.empty() ? ", loads" : ", does not load"));
        }
        Text groups;
        for (const Json& group : system_.at("device_files").at("groups"))
            groups += (groups.empty() ? "" : ", ") + group.get<Text>();
        line("  groups          " + groups);
        for (const Json& file : system_.at("device_files").at("files"))
            line("  " + file.at("path").get<Text>() + " (group " + file.at("group").get<Text>() +
                 "): " + (file.at("allowed") ? "may be opened" : "may not be opened"));
        if (system_.at("device_files").at("files").empty())
            line("  no device file of a GPU in /dev/dri, /dev/kfd and /dev/nvidia*");
    }

    void one_device(const Json& device) {
        const bool is_default = report_.value("default", "") == device.at("id").get<Text>();
        heading("Device " + device.at("id").get<Text>() + ": " + device.at("name").get<Text>() +
                (is_default ? " (the default)" : ""));
        line("  platform        " + device.at("platform").get<Text>() + ", " +
             device.at("type").get<Text>() + ", driver " + device.at("driver").get<Text>());
        if (!device.at("works")) {
            line("  does not work   " + device.value("error", ""));
            return;
        }
        if (device.contains("traits")) traits(device.at("traits"));
        if (device.contains("peaks")) {
            const Json& peaks = device.at("peaks");
            if (peaks.contains("error"))
                line("  measured        nothing: " + peaks.at("error").get<Text>());
            else
                line("  measured        " + number(peaks.at("fp32_gflops"), "%.0f") +
                     " GFLOP/s fp32, copy " + number(peaks.at("copy_gbytes_per_s")) +
                     " GB/s, launch " + number(peaks.at("launch_us")) + " us, wait " +
                     number(peaks.at("wait_us")) + " us");
        }
        if (device.contains("distrusted")) trust(device);
        if (device.contains("tuning_rows")) tuning_rows(device.at("tuning_rows"));
        if (device.contains("self_test")) self_test(device.at("self_test"));
    }

    /// What networks' checks of engines have found before.
    void trust(const Json& device) {
        const Json& wrong = device.at("distrusted");
        line("  engines' checks " + device.at("checks").at("right").dump() + " kernels right, " +
             std::to_string(wrong.size()) + " wrong, " + device.at("checks").at("unknown").dump() +
             " not compared");
        for (const Json& one : wrong)
            line("    disabled: " + one.at("engine").get<Text>() + ": " +
                 one.at("reason").get<Text>());
    }

    /// How engines and tiles are chosen: by rows of databases, else by rules.
    void tuning_rows(const Json& rows) {
        const Text name = "  tuning rows     ";
        if (rows.empty()) line(name + "none: rules choose engines and tiles of all operators");
        for (const Json& of : rows) {
            Text text;
            for (const char* kind : {"measured", "computed", "outdated"})
                if (of.at(kind) != 0)
                    text += (text.empty() ? "" : ", ") + of.at(kind).dump() + ' ' + kind;
            line((&of == &rows.front() ? name : Text(name.size(), ' ')) +
                 of.at("operator").get<Text>() + ": " + text);
        }
        if (!rows.empty())
            line(Text(name.size(), ' ') + "rules choose for all problems without a row");
    }

    void traits(const Json& traits) {
        line("  units           " + traits.at("compute_units").dump() + ", vectors of " +
             traits.at("vector_width").dump() + " floats, work-groups of up to " +
             traits.at("max_work_group").dump());
        line("  memory          " + traits.at("global_mib").dump() + " MiB, " +
             traits.at("max_alloc_mib").dump() + " MiB in one allocation, local " +
             traits.at("local_kib").dump() + " KiB" +
             (traits.at("unified_memory") ? ", shared with the host" : ""));
        Text features;
        const std::vector<std::pair<const char*, const char*>> names = {
            {"fp16", "fp16"},
            {"fp64", "fp64"},
            {"wgmma", "matrix instructions of warpgroups (wgmma)"},
            {"mma", "matrix instructions of warps (mma)"},
            {"matrix_fp16", "of fp16"},
            {"matrix_bf16", "of bf16"}};
        for (const auto& [key, name] : names)
            if (traits.at(key)) features += (features.empty() ? "" : ", ") + Text(name);
        if (const int lanes = traits.at("subgroup_size"); lanes > 0)
            features +=
                (features.empty() ? "" : ", ") + Text("sub-groups of ") + std::to_string(lanes);
        line("  capabilities    " + (features.empty() ? Text("none of fp16, fp64, sub-groups, "
                                                             "matrix instructions")
                                                      : features));
    }

    void self_test(const Json& test) {
        line("  self-test       " + test.at("right").dump() + " right, " + test.at("wrong").dump() +
             " wrong, " + test.at("crashed").dump() + " crashed, " + test.at("failed").dump() +
             " failed, " + test.at("skipped").dump() + " skipped of " + test.at("engines").dump() +
             " engines in " + test.at("cases").dump() + " cases; largest error " +
             number(test.at("worst_error"), "%.1e") + "; " + number(test.at("seconds")) + " s");
        if (const int left = test.at("unfinished"); left > 0)
            line("                  " + std::to_string(left) +
                 (left == 1 ? " case was" : " cases were") +
                 " left when the time was over; --seconds gives more");
        for (const Json& one : test.at("stopped"))
            line("    stopped: " + one.at("case").get<Text>() + " had run for " +
                 number(one.at("seconds"), "%.0f") + " s when the time was over");
        std::map<Text, int> reasons;
        for (const Json& row : test.at("rows")) {
            const Text outcome = row.at("outcome");
            if (outcome == "skipped") ++reasons[row.at("reason")];
            if (outcome != "wrong" && outcome != "failed" && outcome != "crashed") continue;
            const Text engine = row.at("engine");
            line("    " + outcome + ": " + row.at("operator").get<Text>() + '/' +
                 row.at("case").get<Text>() + ' ' + row.at("direction").get<Text>() +
                 (engine.empty() ? Text() : " by " + engine) + ": " + row.at("reason").get<Text>());
        }
        for (const auto& [reason, times] : reasons)
            line("    skipped " + std::to_string(times) + ": " + reason);
    }

    void storage() {
        if (system_.at("storage").empty()) return;
        heading("Caches and databases");
        for (const Json& place : system_.at("storage"))
            line("  " + place.at("what").get<Text>() + ": " + place.at("path").get<Text>() + ", " +
                 (place.at("exists")
                      ? place.at("files").dump() + " files, " + bytes_of(place.at("bytes"))
                      : Text("not there yet")) +
                 (place.at("writable") ? "" : ", cannot be written"));
    }

    void environment() {
        if (system_.at("environment").empty()) return;
        heading("Environment");
        for (const Json& variable : system_.at("environment"))
            line("  " + variable.at("name").get<Text>() + "=" + variable.at("value").get<Text>());
    }

    const Json& report_;
    const Json& system_;
    Text out_;
};

}  // namespace

std::string text_of(const Json& report) {
    return Report(report).str();
}

}  // namespace dlprim::doctor
