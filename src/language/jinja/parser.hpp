// SPDX-License-Identifier: MIT
// Parser of templates: Jinja's statements and expressions as far as chat templates use them. What
// another file would be needed for (include, import, extends, block) is not supported.
#pragma once

#include "language/jinja/syntax.hpp"

#include <string_view>

namespace dlprim::language::jinja {

/// Throws what Run::fail() throws; run.line is the line.
Body parse(Run& run, std::string_view text);

}  // namespace dlprim::language::jinja
