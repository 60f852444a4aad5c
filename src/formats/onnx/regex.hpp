// SPDX-License-Identifier: MIT
// Regex: whether a whole text matches a pattern in the syntax of RE2, without back references. The
// time is the text's length times the pattern's (Thompson's simulation of an automaton), whatever
// both hold.
//
// Known are: characters and their escapes, '.', classes in brackets, \d \D \w \W \s \S, groups,
// alternatives, the repetitions * + ? {n} {n,} {n,m}, also lazy ones, ^ and $ at the text's ends,
// and \b and \B at and between the edges of words.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::onnx {

class Regex {
  public:
    /// Throws Error(unsupported), which quotes the pattern, for what is not known or not right, and
    /// where repetitions make it larger than 65536 states.
    explicit Regex(std::string_view pattern);

    bool matches(std::string_view text) const;

  private:
    friend class RegexParser;
    /// Ranges of code points.
    using Set = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    struct State {
        enum class Kind : std::uint8_t { set, both, next, begin, end, edge, no_edge, match };
        Kind kind = Kind::match;
        Set set;
        std::size_t next = 0, other = 0;  ///< `both` goes on at both
    };

    void follow(std::size_t state, std::size_t at, const std::vector<std::uint32_t>& points,
                std::vector<std::size_t>& active, std::vector<std::size_t>& seen) const;

    std::vector<State> states_;
};

}  // namespace dlprim::onnx
