// SPDX-License-Identifier: MIT
// The side of dlprim_compile: compiles what another process asks for, and saves it in the binary
// cache under the key by which the other process will look for it.
#pragma once

#include "runtime/compile_messages.hpp"
#include "runtime/compile_target.hpp"

namespace dlprim {

/// Returns the first message to such a process.
Message greeting(const CompileTarget& target);

/// Serves the process at the other end of the socket until that closes it or ends. Then this
/// process ends at once, also in the middle of a compilation. The function owns the socket and
/// never returns.
[[noreturn]] void serve_compiling(int socket);

}  // namespace dlprim
