// SPDX-License-Identifier: MIT
// Loads transport plugins from the folder of plugins, which lies beside the library.
#include "base/env.hpp"
#include "base/text.hpp"
#include "collective/processes/transport.hpp"
#include "runtime/compile_program.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

/// Folders in which plugins may lie: what the user says, and beside this code, which is in the
/// library or in a program.
std::vector<fs::path> folders() {
    if (const auto given = env("DLPRIM_PLUGINS")) return {*given};
    Dl_info info{};
    std::error_code code;
    if (::dladdr(reinterpret_cast<const void*>(&load_transport), &info) == 0) return {};
    const fs::path self = fs::canonical(info.dli_fname != nullptr && info.dli_fname[0] == '/'
                                            ? fs::path(info.dli_fname)
                                            : fs::path("/proc/self/exe"),
                                        code);
    std::vector<fs::path> all;
    struct stat status {};
    if (code || ::stat(self.c_str(), &status) != 0) return {};
    for (const char* folder : {DLPRIM_PLUGINS_FROM_LIB, DLPRIM_PLUGINS_FROM_BIN}) {
        fs::path place = fs::canonical(self.parent_path() / folder, code);
        // Above a program in /tmp/build, for example, any user could have put /tmp/lib.
        if (!code && is_protected(place, status.st_uid)) all.push_back(std::move(place));
    }
    return all;
}

fs::path file_of(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    std::error_code code;
    for (const fs::path& folder : folders()) {
        fs::path file = folder / cat("dlprim_", name, ".so");
        if (fs::is_regular_file(file, code)) return file;
    }
    const std::array<std::string, 3> known{"openmpi", "mpich", "gloo"};
    if (std::find(known.begin(), known.end(), name) == known.end())
        fail(ErrorKind::not_found, "there is no plugin dlprim_", name,
             ".so, by which the processes of this run are to exchange data",
             did_you_mean(name, known), "; DLPRIM_TRANSPORT is ", join(known, ", "),
             " or the path of a file");
    fail(ErrorKind::not_found, "there is no plugin dlprim_", name,
         ".so, by which the processes of this run are to exchange data; a build makes it where it "
         "finds ",
         name == "gloo" ? "Gloo (libgloo-dev)"
                        : (name == "mpich" ? "MPICH (libmpich-dev)" : "Open MPI (libopenmpi-dev)"),
         ", and DLPRIM_PLUGINS names its folder");
}

}  // namespace

const dlprim_transport& load_transport(const std::string& name) {
    const fs::path file = file_of(name);
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const why = ::dlerror();
        fail(ErrorKind::unsupported, "the plugin '", file.string(),
             "' does not load: ", why == nullptr ? "unknown reason" : why,
             "; is the library that it uses installed?");
    }
    const auto function = reinterpret_cast<dlprim_transport_plugin_function>(
        ::dlsym(library, "dlprim_transport_plugin"));
    if (function == nullptr)
        fail(ErrorKind::unsupported, "'", file.string(), "' is no plugin of dlprim for transport");
    const dlprim_transport* const plugin = function();
    if (plugin == nullptr || plugin->abi != DLPRIM_TRANSPORT_ABI)
        fail(ErrorKind::unsupported, "the plugin '", file.string(),
             "' belongs to another version of dlprim");
    return *plugin;  // it stays loaded: MPI cannot be unloaded
}

}  // namespace dlprim
