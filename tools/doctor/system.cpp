// SPDX-License-Identifier: MIT
// The system's part of a report: distribution, ICD files, device files, graphics cards.
#include "doctor/system.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

namespace dlprim::doctor {

namespace fs = std::filesystem;

namespace {

std::string trimmed(std::string text) {
    const char* const blanks = " \t\r\n\"'";
    text.erase(0, text.find_first_not_of(blanks));
    const std::size_t end = text.find_last_not_of(blanks);
    return end == std::string::npos ? "" : text.substr(0, end + 1);
}

/// The first line of a small file, or "".
std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    if (line.size() > 4096) line.resize(4096);
    return trimmed(line);
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> all;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
        all.push_back(it->path());
    std::sort(all.begin(), all.end());
    return all;
}

std::string group_name(gid_t id) {
    const group* const found = getgrgid(id);
    return found != nullptr ? found->gr_name : std::to_string(id);
}

}  // namespace

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string without_home(const std::string& path) {
    const std::string home = variable("HOME");
    if (home.size() > 1 && path.compare(0, home.size(), home) == 0 &&
        (path.size() == home.size() || path[home.size()] == '/'))
        return "~" + path.substr(home.size());
    return path;
}

Json distribution() {
    std::map<std::string, std::string> values;
    std::ifstream file("/etc/os-release");
    for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos)
            values[line.substr(0, equals)] = trimmed(line.substr(equals + 1));
    }
    utsname kernel{};
    uname(&kernel);
    return {{"id", values["ID"]},
            {"like", values["ID_LIKE"]},
            {"name", values["PRETTY_NAME"].empty() ? "unknown" : values["PRETTY_NAME"]},
            {"kernel", std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine}};
}

Json icd_files() {
    // As Debian's loader (ocl-icd) reads the variable: a folder, a file that names a library, or a
    // library.
    std::string folder = variable("OCL_ICD_VENDORS");
    if (folder.empty()) folder = variable("OPENCL_VENDOR_PATH");
    if (folder.empty()) folder = "/etc/OpenCL/vendors";
    Json files = Json::array();
    const auto add = [&](const std::string& file, const std::string& library) {
        const std::string error =
            library.empty() ? "the file names no library" : why_not_loaded(library);
        files.push_back({{"file", file}, {"library", library}, {"error", error}});
    };
    std::error_code code;
    if (fs::is_directory(folder, code)) {
        for (const fs::path& path : entries(folder))
            if (path.extension() == ".icd") add(path.string(), first_line(path));
    } else if (fs::path(folder).extension() == ".icd") {
        add(folder, first_line(folder));
    } else if (!variable("OCL_ICD_VENDORS").empty() && folder.find(".so") != std::string::npos) {
        add(folder, folder);
    }
    return {{"folder", folder}, {"exists", fs::exists(folder, code)}, {"files", files}};
}

Json device_files() {
    std::vector<gid_t> ids(static_cast<std::size_t>(std::max(0, getgroups(0, nullptr))));
    const int got = getgroups(static_cast<int>(ids.size()), ids.data());
    ids.resize(static_cast<std::size_t>(std::max(0, got)));
    // POSIX leaves open whether getgroups() lists the effective group, which counts as well.
    if (std::find(ids.begin(), ids.end(), getegid()) == ids.end())
        ids.insert(ids.begin(), getegid());
    Json groups = Json::array();
    for (const gid_t id : ids) groups.push_back(group_name(id));
    Json files = Json::array();
    const auto add = [&](const fs::path& path) {
        struct stat status {};
        if (stat(path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return;
        files.push_back({{"path", path.string()},
                         {"group", group_name(status.st_gid)},
                         {"allowed", access(path.c_str(), R_OK | W_OK) == 0}});
    };
    for (const fs::path& path : entries("/dev/dri")) add(path);
    add("/dev/kfd");
    add("/dev/dxg");
    for (const fs::path& path : entries("/dev"))
        if (path.filename().string().rfind("nvidia", 0) == 0) add(path);
    return {{"user", getuid() == 0 ? "root" : "not root"}, {"groups", groups}, {"files", files}};
}

Json graphics_cards() {
    const std::map<std::string, const char*> vendors = {
        {"0x8086", "intel"}, {"0x1002", "amd"}, {"0x10de", "nvidia"}};
    Json cards = Json::array();
    for (const fs::path& path : entries("/sys/bus/pci/devices")) {
        const std::string kind = first_line(path / "class");
        // Display controllers, and accelerators of processing.
        if (kind.rfind("0x03", 0) != 0 && kind.rfind("0x12", 0) != 0) continue;
        const auto vendor = vendors.find(first_line(path / "vendor"));
        if (vendor != vendors.end())
            cards.push_back({{"vendor", vendor->second}, {"pci", path.filename().string()}});
    }
    return cards;
}

}  // namespace dlprim::doctor
