// SPDX-License-Identifier: MIT
// What plugins of engines in C++ share: messages, options, and a reason for what they do not
// support.
#pragma once

#include <dlprim/engine_plugin.h>

#include <exception>
#include <stdexcept>
#include <string>

/// Why an engine does not support a problem.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void say(const dlprim_engine_message& message, const std::string& what) {
    if (message.room > 0) message.text[what.copy(message.text, message.room - 1)] = 0;
}

/// Calls `work`. Returns whether it throws nothing; what it throws is the message.
template <typename Work>
bool succeeds(const dlprim_engine_message& message, const Work& work) {
    try {
        work();
        return true;
    } catch (const std::exception& error) {
        say(message, error.what());
        return false;
    }
}

/// An option of the problem's operator; the library gives all that it has.
inline const dlprim_engine_option& option(const dlprim_engine_problem& problem,
                                          const std::string& name) {
    for (std::size_t i = 0; i < problem.option_count; ++i)
        if (name == problem.options[i].name) return problem.options[i];
    throw Unsupported("the operator has no option " + name);
}
