// SPDX-License-Identifier: MIT
// Environment variables, and the folders and files that the library and its drivers write.
#include "doctor/known_variables.hpp"
#include "doctor/system.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <vector>

extern char** environ;

namespace dlprim::doctor {

namespace fs = std::filesystem;

namespace {

/// The number of letters to insert, remove or exchange.
std::size_t edits(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] =
                std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string nearest(const std::string& name) {
    std::string best;
    std::size_t least = ~std::size_t{0};
    for (const char* const known : known_variables) {
        const std::size_t count = edits(name, known);
        if (count >= least) continue;
        least = count;
        best = known;
    }
    return best;
}

bool begins(const std::string& name, std::initializer_list<const char*> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

/// Whether files can be made in the folder, or in its nearest parent that exists.
bool can_write(fs::path folder) {
    std::error_code code;
    while (!fs::exists(folder, code) && folder.has_relative_path()) folder = folder.parent_path();
    // Permissions alone do not tell: the file system may be read-only, and root has all of them.
    std::string trial = (folder / "dlprim-doctor-XXXXXX").string();
    return mkdtemp(trial.data()) != nullptr && rmdir(trial.c_str()) == 0;
}

void add_folder(Json& all, const char* what, const fs::path& folder) {
    std::uint64_t files = 0, bytes = 0;
    std::error_code code;
    const auto skip = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(folder, skip, code), end; !code && it != end;
         it.increment(code)) {
        std::error_code no_size;
        if (!it->is_regular_file(no_size)) continue;
        const std::uint64_t size = it->file_size(no_size);
        ++files;
        bytes += no_size ? 0 : size;
    }
    std::error_code unknown;
    all.push_back({{"what", what},
                   {"path", without_home(folder.string())},
                   {"exists", fs::exists(folder, unknown)},
                   {"writable", can_write(folder)},
                   {"files", files},
                   {"bytes", bytes}});
}

void add_file(Json& all, const char* what, const fs::path& file) {
    std::error_code code;
    const std::uint64_t bytes = fs::file_size(file, code);
    const bool exists = !code;
    all.push_back({{"what", what},
                   {"path", without_home(file.string())},
                   {"exists", exists},
                   {"writable",
                    can_write(file.parent_path()) && (!exists || access(file.c_str(), W_OK) == 0)},
                   {"files", exists ? 1 : 0},
                   {"bytes", exists ? bytes : 0}});
}

/// A folder of the user's caches: $XDG_CACHE_HOME/NAME, else ~/.cache/NAME, or empty.
fs::path cache_folder(const char* name) {
    if (const std::string base = variable("XDG_CACHE_HOME"); !base.empty())
        return fs::path(base) / name;
    if (const std::string home = variable("HOME"); !home.empty())
        return fs::path(home) / ".cache" / name;
    return {};
}

}  // namespace

Json environment() {
    Json all = Json::array();
    std::vector<std::string> entries;
    for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
    std::sort(entries.begin(), entries.end());
    for (const std::string& entry : entries) {
        const std::size_t equals = entry.find('=');
        const std::string name = entry.substr(0, equals);
        if (equals == std::string::npos || name == "HOME" || name == "CXX") continue;
        const bool known = std::find(std::begin(known_variables), std::end(known_variables),
                                     name) != std::end(known_variables);
        const bool ours = begins(name, {"DLPRIM_", "DLPRM_", "DLPRIMS_"});
        if (!known && !ours &&
            !begins(name,
                    {"POCL_", "OCL_", "OPENCL_", "CL_", "CUDA_", "HSA_", "ROCR_", "RUSTICL_"}))
            continue;
        all.push_back({{"name", name},
                       {"value", without_home(entry.substr(equals + 1))},
                       {"misspelt_for", ours && !known ? nearest(name) : ""}});
    }
    return all;
}

Json storage() {
    Json all = Json::array();
    fs::path cache = variable("DLPRIM_CACHE_DIR");
    if (cache.empty()) cache = cache_folder("dlprim");
    const bool off = variable("DLPRIM_CACHE") == "0";
    if (!cache.empty() && !off) {
        add_folder(all, "compiled kernels", cache / "kernels");
        add_folder(all, "checks of engines", cache / "trust");
        add_folder(all, "compilers' logs", cache / "logs");
    }
    fs::path tunings = variable("DLPRIM_TUNING");
    if (tunings.empty() && !cache.empty() && !off) tunings = cache / "tuning.json";
    if (!tunings.empty()) add_file(all, "tuning database", tunings);
    fs::path pocl = variable("POCL_CACHE_DIR");
    if (pocl.empty() && !cache_folder("pocl").empty()) pocl = cache_folder("pocl") / "kcache";
    std::error_code code;
    if (!pocl.empty() && (fs::exists(pocl, code) || !variable("POCL_CACHE_DIR").empty()))
        add_folder(all, "PoCL's cache", pocl);
    const std::string home = variable("HOME");
    if (!home.empty() && fs::exists(fs::path(home) / ".nv/ComputeCache", code))
        add_folder(all, "NVIDIA's cache", fs::path(home) / ".nv/ComputeCache");
    return all;
}

}  // namespace dlprim::doctor
