// SPDX-License-Identifier: MIT
// PoclDeclarations: declarations of the functions that a program names, for PoCL's compiler.
//
// PoCL reads Clang's opencl-c.h before each program: 14,500 declarations, twice, which takes longer
// than the text of most programs. The header's own guard, as an option, leaves it out. Then the
// program has in front what it needs of the header, word by word, so that its code stays the same.
#pragma once

#include "runtime/program.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dlprim {

/// Several threads may use it.
class PoclDeclarations {
  public:
    /// Those of the PoCL that this process has loaded. Returns nullptr if its header is not beside
    /// its library, or is not read() as Clang's is.
    static const PoclDeclarations* of_process();

    /// `header` is the text of opencl-c.h.
    explicit PoclDeclarations(std::string header);
    PoclDeclarations(const PoclDeclarations&) = delete;
    PoclDeclarations& operator=(const PoclDeclarations&) = delete;

    /// Whether the header has its guard, and its conditions are closed.
    bool read() const noexcept { return read_; }

    /// The option that leaves the header out.
    static constexpr const char* option = " -D_OPENCL_H_";
    /// The program with that option and its declarations. It has those of all words of its text and
    /// its options, and where it joins words, those of conversions, loads and stores whose names
    /// can be joined. A function whose name comes about otherwise is not declared.
    ProgramSource in_front_of(const ProgramSource& source) const;

  private:
    /// What a line of the header does, or several lines that belong together.
    enum class Kind { opens, branches, closes, declares, other };
    struct Piece {
        Kind kind;
        std::string_view text;
        std::uint32_t function;  ///< the number of the function that is declared
    };
    using Words = std::unordered_set<std::string_view>;

    void add_directive(std::string_view text);
    void add_declaration(std::string_view text);
    bool remove_guard();
    std::vector<bool> wanted_by(const ProgramSource& source) const;
    std::string text_of(const std::vector<bool>& wanted) const;

    std::string header_;
    std::vector<Piece> pieces_;
    std::unordered_map<std::string_view, std::uint32_t> functions_;
    bool read_;
};

}  // namespace dlprim
