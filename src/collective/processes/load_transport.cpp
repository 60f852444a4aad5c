// SPDX-License-Identifier: MIT
// Loads transport plugins from the folder of plugins, which lies beside the library.
#include "base/text.hpp"
#include "collective/processes/transport.hpp"
#include "runtime/plugins.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    std::error_code code;
    for (const fs::path& folder : plugin_folders()) {
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
    const auto function = reinterpret_cast<dlprim_transport_plugin_function>(
        plugin_function(file, "dlprim_transport_plugin", "plugin of dlprim for transport"));
    const dlprim_transport* const plugin = function();
    if (plugin == nullptr || plugin->abi != DLPRIM_TRANSPORT_ABI)
        fail(ErrorKind::unsupported, "the plugin '", file.string(),
             "' belongs to another version of dlprim");
    return *plugin;  // it stays loaded: MPI cannot be unloaded
}

}  // namespace dlprim
