// SPDX-License-Identifier: MIT
// Warnings: the library's warnings, for tests of what it says in place of an error.
#pragma once

#include <dlprim/log.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dlprim::testing {

/// Collects the library's warnings during its lifetime.
struct Warnings {
    Warnings() {
        set_log([this](LogLevel level, std::string_view line) {
            if (level == LogLevel::warning) lines.emplace_back(line);
        });
    }
    ~Warnings() { set_log({}); }
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;
    std::vector<std::string> lines;
};

}  // namespace dlprim::testing
