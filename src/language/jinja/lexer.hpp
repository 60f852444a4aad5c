// SPDX-License-Identifier: MIT
// Tokens of a template: text between tags, and what stands in the tags. Blanks around tags are
// dropped as Jinja does with trim_blocks and lstrip_blocks, which chat templates are written for.
#pragma once

#include "language/jinja/run.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language::jinja {

struct Token {
    enum class Kind {
        text,          ///< outside of tags
        output_begin,  ///< {{
        output_end,    ///< }}
        block_begin,   ///< {%
        block_end,     ///< %}
        name,
        string,
        integer,
        number,
        sign,  ///< an operator or a bracket
        end,
    };
    Kind kind;
    std::size_t line;
    std::string text = {};
    std::int64_t integer = 0;
    double number = 0;
};

/// Throws what Run::fail() throws; run.line is the line.
std::vector<Token> tokens_of(Run& run, std::string_view text);

}  // namespace dlprim::language::jinja
