// SPDX-License-Identifier: MIT
// What calls throw, and what the errors say.
#pragma once

#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <string>
#include <vector>

namespace dlprim::testing {

/// The message of the Error that the call throws, or "no error".
template <typename Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

/// The same of an Error, whose kind is checked.
template <typename Call>
std::string message_of(ErrorKind kind, Call&& call) {
    return message_of([&] {
        try {
            call();
        } catch (const Error& error) {
            CHECK(static_cast<int>(error.kind()) == static_cast<int>(kind));
            throw;
        }
    });
}

/// Checks that the call throws an Error of `kind` whose message contains each of the words.
template <typename Call>
void check_error(ErrorKind kind, const std::vector<std::string>& words, Call&& call) {
    const std::string what = message_of(kind, call);
    INFO("the message: " << what);
    CHECK(what != "no error");
    for (const std::string& word : words) {
        INFO("is to hold: " << word);
        CHECK(what.find(word) != std::string::npos);
    }
}

}  // namespace dlprim::testing
