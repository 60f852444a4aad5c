// SPDX-License-Identifier: MIT
// Run: where a rendering is in its template, and what it may still spend. A unit is about a byte
// that is written or searched; a step of the interpreter takes several.
#pragma once

#include "base/text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace dlprim::language::jinja {

struct Limits {
    std::uint64_t units = std::uint64_t{1} << 27;
    std::size_t output = std::size_t{16} << 20;  ///< bytes of the result
    int depth = 600;                             ///< of expressions, statements and calls
};

class Run {
  public:
    Run(std::string source, const Limits& limits)
        : source_(std::move(source)), limits_(limits), left_(limits.units) {}

    std::size_t line = 1;

    const Limits& limits() const { return limits_; }
    void spend(std::uint64_t units) {
        if (units > left_) fail("it takes too long: more than ", limits_.units, " units of work");
        left_ -= units;
    }
    /// Throws Error(format) with the source and the line.
    template <typename... Parts>
    [[noreturn]] void fail(const Parts&... parts) const {
        dlprim::fail(ErrorKind::format, source_, ", line ", line, ": ", parts...);
    }
    template <typename... Parts>
    void require(bool condition, const Parts&... parts) const {
        if (!condition) fail(parts...);
    }
    /// Throws Error(invalid_argument) for a conversation that the template does not take.
    [[noreturn]] void refuse(const std::string& message) const {
        dlprim::fail(ErrorKind::invalid_argument, source_, ", line ", line,
                     ", does not take this conversation: ", message);
    }

  private:
    std::string source_;
    Limits limits_;
    std::uint64_t left_;
};

}  // namespace dlprim::language::jinja
