// SPDX-License-Identifier: MIT
// Names for eager calls in errors and log lines that come after the calls have returned
// (docs/engines/eager.md). Inside a call, a program that wraps the library adds its own name to an
// error as it passes; of such errors it could not know whose they are.
//
// Threads: any thread may call this.
#pragma once

#include <dlprim/namespace.hpp>

#include <functional>
#include <string>

namespace dlprim {

/// Installs what the library asks, on the thread that calls an operator, for the program's own name
/// of the call, such as "aten::conv2d", when the call is put off. Errors and log lines of the call
/// begin with it. An empty text is no name. The process has one such function, which must not call
/// the library; an empty one removes it.
void set_call_names(std::function<std::string()> name);

}  // namespace dlprim
