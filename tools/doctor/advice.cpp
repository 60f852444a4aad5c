// SPDX-License-Identifier: MIT
// Rules from facts of a report to advice.
#include "doctor/advice.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace dlprim::doctor {

namespace {

using Text = std::string;

/// Package names by family of distributions.
struct Packages {
    const char* command;
    std::map<Text, const char*> names;
};

const Packages* packages_of(const Json& distribution) {
    static const std::map<Text, Packages> families = {
        {"debian",
         {"sudo apt install ",
          {{"loader", "ocl-icd-libopencl1"},
           {"cpu", "pocl-opencl-icd"},
           {"intel", "intel-opencl-icd"},
           {"amd", "mesa-opencl-icd (rusticl), or rocm-opencl-icd of AMD's repository"},
           {"nvidia", "nvidia-driver nvidia-opencl-icd"}}}},
        {"ubuntu",
         {"sudo apt install ",
          {{"loader", "ocl-icd-libopencl1"},
           {"cpu", "pocl-opencl-icd"},
           {"intel", "intel-opencl-icd"},
           {"amd", "mesa-opencl-icd (rusticl), or rocm-opencl of AMD's repository"},
           {"nvidia", "nvidia-driver (sudo ubuntu-drivers install chooses its version)"}}}},
        {"fedora",
         {"sudo dnf install ",
          {{"loader", "ocl-icd"},
           {"cpu", "pocl"},
           {"intel", "intel-compute-runtime"},
           {"amd", "rocm-opencl, or mesa-libOpenCL (rusticl)"},
           {"nvidia", "akmod-nvidia xorg-x11-drv-nvidia-cuda of RPM Fusion"}}}},
        {"arch",
         {"sudo pacman -S ",
          {{"loader", "ocl-icd"},
           {"cpu", "pocl"},
           {"intel", "intel-compute-runtime"},
           {"amd", "rocm-opencl-runtime, or opencl-mesa (rusticl)"},
           {"nvidia", "nvidia opencl-nvidia"}}}},
    };
    const Text id = distribution.value("id", ""), like = ' ' + distribution.value("like", "") + ' ';
    if (const auto found = families.find(id); found != families.end()) return &found->second;
    for (const char* family : {"ubuntu", "debian", "fedora", "arch"})
        if (like.find(Text(" ") + family + " ") != Text::npos) return &families.at(family);
    return nullptr;
}

/// Collects troubles.
class Judge {
  public:
    explicit Judge(Json& report) : report_(report), system_(report.at("system")) {}

    void run() {
        loader_and_platforms();
        device_permissions();
        cards_without_device();
        devices();
        surroundings();
        sum_up();
    }

  private:
    void add(const Text& what, const Text& advice, bool serious) {
        for (const Json& known : troubles_)
            if (known.at("what") == what) return;
        troubles_.push_back({{"what", what}, {"advice", advice}, {"serious", serious}});
    }

    Text install(const char* what) const {
        return how_to_install(system_.at("distribution"), what);
    }

    bool has_opencl_device() const {
        const Json& all = report_.at("devices");
        return std::any_of(all.begin(), all.end(),
                           [](const Json& device) { return device.at("type") != "host"; });
    }

    void loader_and_platforms() {
        const Text loader = system_.at("loader_error");
        if (!loader.empty()) add("OpenCL's loader is missing: " + loader, install("loader"), true);
        const Json& icds = system_.at("icd");
        for (const Json& file : icds.at("files")) {
            const Text error = file.at("error");
            if (error.empty()) continue;
            add("the ICD file '" + file.at("file").get<Text>() + "' names the library '" +
                    file.at("library").get<Text>() + "', which does not load: " + error,
                "install the driver's package again, or remove the file if the driver is gone",
                !has_opencl_device());
        }
        if (icds.at("files").empty() && loader.empty())
            add("there is no OpenCL platform: no ICD file is in '" + icds.at("folder").get<Text>() +
                    "'",
                "install the driver of your GPU (below), or for processors: " + install("cpu"),
                true);
        for (const Json& trouble : report_.at("library_troubles"))
            add(trouble.get<Text>(), "", !has_opencl_device());
        if (const Text crash = report_.at("list_error"); !crash.empty())
            add("listing the devices failed: " + crash,
                report_.value("culprit", "").empty()
                    ? "see the ICD files below; OCL_ICD_VENDORS can name a folder with fewer of "
                      "them"
                    : "the platform of '" + report_.value("culprit", "") +
                          "' is the cause: update or remove its driver",
                true);
    }

    void device_permissions() {
        std::set<Text> groups;
        for (const Json& file : system_.at("device_files").at("files")) {
            const Text path = file.at("path"), group = file.at("group");
            // Only those that computing needs: card* are for displays.
            const bool needed =
                path.find("/card") == Text::npos && path.find("nvidia-modeset") == Text::npos;
            if (file.at("allowed") || !needed || path.find("nvidia-caps") != Text::npos) continue;
            if (!groups.insert(group).second) continue;
            add("this user may not open '" + path + "' (group " + group + ")",
                "sudo usermod -aG " + group + " $USER, then log out and in again", true);
        }
    }

    /// Graphics cards of a vendor of which there is no OpenCL device.
    void cards_without_device() {
        std::set<Text> seen;
        for (const Json& card : system_.at("cards")) {
            const Text vendor = card.at("vendor");
            if (!seen.insert(vendor).second) continue;
            const std::map<Text, std::vector<const char*>> words = {
                {"intel", {"Intel"}},
                {"amd", {"AMD", "Advanced Micro", "Radeon"}},
                {"nvidia", {"NVIDIA"}}};
            const Json& all = report_.at("devices");
            const bool there = std::any_of(all.begin(), all.end(), [&](const Json& device) {
                const Text text = device.value("vendor", "") + ' ' + device.value("name", "");
                return device.at("type") == "gpu" &&
                       std::any_of(words.at(vendor).begin(), words.at(vendor).end(),
                                   [&](const char* word) { return text.find(word) != Text::npos; });
            });
            if (report_.at("asked").get<Text>().empty() && !there)
                add("the graphics card " + card.at("pci").get<Text>() + " of " + vendor +
                        " has no OpenCL device",
                    "install its driver: " + install(vendor.c_str()), true);
        }
    }

    void devices() {
        for (const Json& device : report_.at("devices")) {
            const Text name = "device " + device.at("id").get<Text>();
            if (!device.at("works"))
                add(name + " does not work: " + device.value("error", ""),
                    "update its driver; until then DLPRIM_DEVICE=cpu chooses the host", true);
            for (const Json& one : device.value("distrusted", Json::array()))
                add(name + ": engine " + one.at("engine").get<Text>() +
                        " is disabled for a kernel: " + one.at("reason").get<Text>(),
                    "networks use the next engine; update the driver, and report this", false);
            if (!device.contains("self_test")) continue;
            for (const Json& row : device.at("self_test").at("rows")) {
                const Text outcome = row.at("outcome"), engine = row.at("engine");
                if (outcome == "skipped" || outcome == "right") continue;
                const Text where = name + ": " + row.at("operator").get<Text>() + '/' +
                                   row.at("case").get<Text>() + ' ' +
                                   row.at("direction").get<Text>() +
                                   (engine.empty() ? Text() : " by engine " + engine);
                add(where +
                        (outcome == "wrong"     ? " is wrong: "
                         : outcome == "crashed" ? " crashed: "
                                                : " failed: ") +
                        row.at("reason").get<Text>(),
                    "update the driver, and report this; the library checks engines before it uses "
                    "them, and --engine forces another one",
                    outcome == "wrong" || outcome == "crashed");
            }
        }
        if (report_.at("devices").empty() && report_.at("list_error").get<Text>().empty())
            add("there is no device", "", true);
    }

    void surroundings() {
        for (const Json& place : system_.at("storage"))
            if (!place.at("writable"))
                add("the " + place.at("what").get<Text>() + " in '" + place.at("path").get<Text>() +
                        "' cannot be written",
                    "kernels are compiled anew in each process; set DLPRIM_CACHE_DIR to a folder "
                    "that can be written",
                    false);
        for (const Json& variable : system_.at("environment"))
            if (const Text nearest = variable.at("misspelt_for"); !nearest.empty())
                add("nothing reads the environment variable " + variable.at("name").get<Text>(),
                    "perhaps " + nearest + " is meant (docs/environment.md lists all)", false);
    }

    void sum_up() {
        int working = 0, wrong = 0, left = 0;
        for (const Json& device : report_.at("devices")) {
            working += device.at("works") ? 1 : 0;
            if (!device.contains("self_test")) continue;
            left += device.at("self_test").at("unfinished").get<int>();
            for (const Json& row : device.at("self_test").at("rows"))
                wrong += row.at("outcome") == "wrong" || row.at("outcome") == "crashed" ? 1 : 0;
        }
        Text first;
        std::size_t serious = 0;
        for (const Json& trouble : troubles_) {
            if (!trouble.at("serious")) continue;
            if (++serious == 1) first = trouble.at("what");
        }
        const Text devices_work =
            std::to_string(working) + (working == 1 ? " device works" : " devices work");
        Text summary;
        if (working == 0)
            summary = "no device works" + (first.empty() ? Text() : ": " + first);
        else if (serious > 0)
            summary = devices_work + ", but " + first +
                      (serious > 1 ? " (and " + std::to_string(serious - 1) + " more)" : Text());
        else
            summary =
                (left > 0 ? "all is well as far as there was time to test: " : "all is well: ") +
                devices_work + (troubles_.empty() ? Text() : "; see the remarks below");
        report_["troubles"] = troubles_;
        report_["ok"] = working > 0 && wrong == 0;
        report_["summary"] = summary;
    }

    Json& report_;
    const Json& system_;
    Json troubles_ = Json::array();
};

}  // namespace

std::string how_to_install(const Json& distribution, const std::string& what) {
    const Packages* const packages = packages_of(distribution);
    if (packages != nullptr) return packages->command + Text(packages->names.at(what));
    if (what == "loader") return "install OpenCL's loader (ocl-icd)";
    return what == "cpu" ? "install PoCL" : "install the OpenCL driver of " + what;
}

void judge(Json& report) {
    Judge(report).run();
}

}  // namespace dlprim::doctor
