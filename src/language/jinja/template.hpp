// SPDX-License-Identifier: MIT
// Template: a text of Jinja that is parsed once and rendered with variables. It sees nothing but
// its variables and the time, and what it takes is limited.
#pragma once

#include "language/jinja/syntax.hpp"

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language::jinja {

class Template {
  public:
    /// `source` is what messages call it. Throws Error(format) with the line of what is no template
    /// or is not supported.
    Template(std::string_view text, std::string source);

    using Variables = std::vector<std::pair<std::string, Value>>;
    /// Throws Error(format) with the line for what has no meaning and where a limit is reached, and
    /// Error(invalid_argument) with the template's own message for what it does not take. Several
    /// threads may render at a time.
    std::string render(const Variables& variables, const std::tm& now,
                       const Limits& limits = {}) const;

    const std::string& source() const { return source_; }

  private:
    std::string source_;
    Body body_;
};

}  // namespace dlprim::language::jinja
