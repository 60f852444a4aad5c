// SPDX-License-Identifier: MIT
// The log hook: the library never prints. A program that wants its notices installs a receiver,
// which the process has one of.
//
// Threads: any thread may call these functions. The receiver is called by whichever thread has a
// notice, one call at a time, and that thread waits for it. It must not call back into the library.
#pragma once

#include <dlprim/namespace.hpp>

#include <functional>
#include <string_view>

namespace dlprim {

enum class LogLevel {
    debug,
    info,
    warning,  ///< something is slower, or another than asked for, and the line says why
};

/// Installs the receiver of log lines, in place of the one before. Empty: none, the default.
/// Returns when no call of the one before is running.
void set_log(std::function<void(LogLevel, std::string_view)> receiver);
/// Sends one line to the receiver, if any.
void log(LogLevel level, std::string_view line);

}  // namespace dlprim
