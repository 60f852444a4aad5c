// SPDX-License-Identifier: MIT
// Finding, loading and trying plugins.
#include "runtime/plugins.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/compile_program.hpp"

#include <dlprim/engine_plugin.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace dlprim {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds trial_time{20};

}  // namespace

std::vector<fs::path> plugin_folders() {
    if (const auto given = env("DLPRIM_PLUGINS")) return {*given};
    Dl_info info{};
    std::error_code code;
    if (::dladdr(reinterpret_cast<const void*>(&plugin_folders), &info) == 0) return {};
    // This code is in the library or in a program.
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

void* plugin_function(const fs::path& file, const char* name, const std::string& what) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const why = ::dlerror();
        fail(ErrorKind::unsupported, "the plugin '", file.string(),
             "' does not load: ", why == nullptr ? "unknown reason" : why,
             "; is the library that it uses installed?");
    }
    void* const function = ::dlsym(library, name);
    if (function == nullptr) fail(ErrorKind::unsupported, "'", file.string(), "' is no ", what);
    return function;
}

std::string failure_of_trial(const fs::path& plugin) {
    const auto program = compile_program();
    if (!program) return {};
    posix_spawn_file_actions_t silent;
    posix_spawn_file_actions_init(&silent);
    for (const int end : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        posix_spawn_file_actions_addopen(&silent, end, "/dev/null", O_RDWR, 0);
    std::string words[] = {program->string(), try_engines, plugin.string()};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t process = -1;
    const int error =
        ::posix_spawn(&process, words[0].c_str(), &silent, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&silent);
    if (error != 0) return {};
    const auto deadline = std::chrono::steady_clock::now() + trial_time;
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(process, &status, WNOHANG);
        if (ended < 0) return {};  // the program waits for all children itself
        if (ended == process) break;
        if (std::chrono::steady_clock::now() > deadline) {
            ::kill(process, SIGKILL);
            ::waitpid(process, &status, 0);
            return cat("does not end within ", trial_time.count(), " s");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (WIFSIGNALED(status)) return cat("ends by signal ", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? std::string()
                                    : cat("ends with exit code ", WEXITSTATUS(status));
}

void try_engine_plugin(const fs::path& plugin) {
    char text[512] = {};
    reinterpret_cast<dlprim_engine_plugin_function>(plugin_function(
        plugin, "dlprim_engine_plugin", "plugin of dlprim for engines"))({text, sizeof text});
}

}  // namespace dlprim
