// SPDX-License-Identifier: MIT
// dlprim_compile compiles OpenCL programs for another process, which starts it with a socket as its
// standard input (runtime/compile_process.hpp). With "try-engines FILE" it loads a plugin of
// engines, which may crash. It is not a command for users.
#include "runtime/compile_server.hpp"
#include "runtime/plugins.hpp"

#include <cstring>
#include <exception>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

/// Closes the files that the other process has open without close-on-exec.
void close_inherited() {
    rlimit most{};
    if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return;
    constexpr rlim_t enough = 65536;
    const int end = static_cast<int>(most.rlim_cur < enough ? most.rlim_cur : enough);
    for (int descriptor = STDERR_FILENO + 1; descriptor < end; ++descriptor) ::close(descriptor);
}

bool is_socket(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

int main(int count, char** words) {
    const bool tries = count == 3 && std::strcmp(words[1], dlprim::try_engines) == 0;
    if (!tries && !is_socket(STDIN_FILENO)) return 2;
    close_inherited();
    // Leave no core file after a crash: the other process does without.
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    if (tries) try {
            dlprim::try_engine_plugin(words[2]);
            return 0;
        } catch (const std::exception&) {
            return 0;  // the other process gets the same error, and says it
        }
    dlprim::serve_compiling(STDIN_FILENO);
}
