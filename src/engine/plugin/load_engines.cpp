// SPDX-License-Identifier: MIT
// A plugin that was not tried before is loaded in a process of its own first, since it may crash.
// The cache folder keeps which files were tried.
#include "engine/plugin/load_engines.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/plugin/plugin_engine.hpp"
#include "engine/plugin/plugin_problem.hpp"
#include "runtime/plugins.hpp"

#include <dlprim/log.hpp>
#include <dlprim/version.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

std::vector<std::string>& left_out() {
    static auto* const all = new std::vector<std::string>;
    return *all;
}

const dlprim_engines& open_plugin(const fs::path& file) {
    const auto function = reinterpret_cast<dlprim_engine_plugin_function>(
        plugin_function(file, "dlprim_engine_plugin", "plugin of dlprim for engines"));
    PluginMessage message;
    const dlprim_engines* const plugin = function(message.room());
    if (plugin == nullptr)
        fail(ErrorKind::unsupported, "it does not work on this machine: ", message.text());
    if (plugin->abi != DLPRIM_ENGINE_ABI)
        fail(ErrorKind::unsupported, "it is of version ", plugin->abi,
             " of dlprim/engine_plugin.h, and this library of version ", DLPRIM_ENGINE_ABI,
             "; compile it again");
    if (plugin->library == nullptr || (plugin->count > 0 && plugin->engines == nullptr))
        fail(ErrorKind::unsupported, "it lacks the name of its library or its engines");
    return *plugin;
}

/// The file whose presence says that the plugin, as it is now, was tried.
std::optional<fs::path> note_of(const fs::path& file) {
    const auto cache = cache_dir();
    if (!cache) return std::nullopt;
    std::error_code code;
    const auto size = fs::file_size(file, code);
    const auto time = fs::last_write_time(file, code).time_since_epoch().count();
    return *cache / "plugins" /
           hash_hex(cat(file.string(), '\n', size, '\n', time, '\n', DLPRIM_VERSION));
}

/// Throws Error(unsupported) if the plugin ends a process that loads it.
void make_sure_it_loads(const fs::path& file) {
    const auto note = note_of(file);
    std::error_code code;
    if (note && fs::exists(*note, code)) return;
    const std::string failure = failure_of_trial(file);
    if (!failure.empty()) fail(ErrorKind::unsupported, "a process that loads it ", failure);
    if (!note) return;
    try {
        fs::create_directories(note->parent_path());
        write_file_atomically(*note, file.string());
    } catch (const std::exception& error) {
        log(LogLevel::debug, error.what());  // it is tried again next time
    }
}

void add_engines(EngineRegistry& engines, const fs::path& file) {
    make_sure_it_loads(file);
    const dlprim_engines& plugin = open_plugin(file);
    std::vector<std::unique_ptr<Engine>> made;
    for (std::size_t i = 0; i < plugin.count; ++i) {
        if (plugin.engines[i] == nullptr) fail(ErrorKind::unsupported, "it lacks an engine");
        auto engine = std::make_unique<PluginEngine>(*plugin.engines[i], plugin.library);
        if (engines.find(engine->name()) != nullptr)
            fail(ErrorKind::unsupported, "there is another engine '", engine->name(), "'");
        made.push_back(std::move(engine));
    }
    for (auto& engine : made) engines.add_first(std::move(engine));
}

}  // namespace

void add_plugin_engines(EngineRegistry& engines) {
    std::error_code code;
    std::vector<fs::path> files;
    for (const fs::path& folder : plugin_folders())
        for (const auto& entry : fs::directory_iterator(folder, code)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("dlprim_engines_") && name.ends_with(".so"))
                files.push_back(entry.path());
        }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) try {
            add_engines(engines, file);
        } catch (const std::exception& error) {
            left_out().push_back(
                cat("the plugin '", file.string(), "' is left out: ", error.what()));
        }
}

void tell_left_out_plugins() {
    static std::atomic<bool> told{false};
    if (left_out().empty() || told.exchange(true)) return;
    for (const std::string& why : left_out()) log(LogLevel::warning, why);
}

}  // namespace dlprim
