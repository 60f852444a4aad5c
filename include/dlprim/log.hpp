// SPDX-License-Identifier: MIT
// The log hook: the library never prints. A program that wants its notices installs a receiver. The
// process has one receiver.
//
// Threads: any thread may call these functions. The receiver is called by whichever thread has a
// notice, one call at a time, and that thread waits for it. It must not call the library.
#pragma once

#include <dlprim/namespace.hpp>

#include <functional>
#include <string_view>

namespace dlprim {

enum class LogLevel {
    debug,
    info,
    /// Something is slower than it could be, or is not what was asked for. The line says why.
    warning,
};

/// Installs the receiver of log lines in place of the present one. An empty function removes it;
/// without a receiver, as at first, lines are dropped. A line has no line break at its end, and its
/// text is valid during the call alone. Waits for a running call of the present receiver.
void set_log(std::function<void(LogLevel, std::string_view)> receiver);
/// Sends one line to the receiver, if any.
void log(LogLevel level, std::string_view line);

}  // namespace dlprim
