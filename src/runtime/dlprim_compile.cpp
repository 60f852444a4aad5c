// SPDX-License-Identifier: MIT
// dlprim_compile compiles OpenCL programs for another process, which starts it with a socket as its
// standard input (runtime/compile_process.hpp). It is not a command for users.
#include "runtime/compile_server.hpp"

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

int main() {
    if (!is_socket(STDIN_FILENO)) return 2;
    close_inherited();
    // Leave no core file if the compiler crashes: the other process compiles the program itself.
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    dlprim::serve_compiling(STDIN_FILENO);
}
