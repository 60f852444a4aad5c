// SPDX-License-Identifier: MIT
// Plugins: shared libraries that are loaded while a program runs, from the folder that
// DLPRIM_PLUGINS names, else from the one that is installed beside the library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dlprim {

/// The folders in which plugins may lie.
std::vector<std::filesystem::path> plugin_folders();

/// The function `name` of a shared library, which stays loaded. Throws Error(unsupported) if the
/// library does not load, or has no such function; `what` is what the library should be: "plugin of
/// dlprim for transport".
void* plugin_function(const std::filesystem::path& file, const char* name, const std::string& what);

/// Has dlprim_compile load a plugin of engines, in a process of its own. Returns why the process
/// does not survive that, as the rest of a sentence ("ends by signal 11"). Returns an empty text if
/// it does, or if there is no dlprim_compile.
std::string failure_of_trial(const std::filesystem::path& plugin);

/// What that process does: calls the plugin's function, which may end the process, and ignores what
/// it returns.
void try_engine_plugin(const std::filesystem::path& plugin);

/// The word by which dlprim_compile is asked for that.
constexpr const char* try_engines = "try-engines";

}  // namespace dlprim
