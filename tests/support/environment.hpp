// SPDX-License-Identifier: MIT
// Variables of the environment, for tests of what reads them.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace dlprim::testing {

/// A variable of the environment while the object lives. Then it is what it was before.
class Variable {
  public:
    Variable(const char* name, const std::string& value) : name_(name) {
        if (const char* const before = std::getenv(name)) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

}  // namespace dlprim::testing
