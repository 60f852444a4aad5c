// SPDX-License-Identifier: MIT
// The log hook: the library never prints; a program that wants its notices installs a callback.
#pragma once

#include <dlprim/namespace.hpp>

#include <functional>
#include <string_view>

namespace dlprim {

enum class LogLevel { debug, info, warning };

/// Installs the receiver of log lines (empty: none, the default). Calls are serialised; the
/// callback must not call back into the library.
void set_log(std::function<void(LogLevel, std::string_view)> receiver);
/// Sends one line to the receiver, if any.
void log(LogLevel level, std::string_view line);

}  // namespace dlprim
