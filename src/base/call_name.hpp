// SPDX-License-Identifier: MIT
// The program's names of its calls (dlprim/call_names.hpp).
#pragma once

#include <dlprim/call_names.hpp>

#include <string>
#include <string_view>

namespace dlprim {

/// What set_call_names() was given says of the calling thread's call; empty without that.
std::string call_name();
/// `text` after the name of a call, if it has one.
std::string of_call(std::string_view name, std::string_view text);

}  // namespace dlprim
