// SPDX-License-Identifier: MIT
// Splitter: cuts a text into the pieces within which byte-level BPE merges, by the regular
// expressions that a model's tokenizer was trained with. ICU matches them; a library that was built
// without it cannot split.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language {

class Splitter {
  public:
    /// `name` as the key tokenizer.ggml.pre has it. Throws Error(unsupported) for a name that is
    /// not known, and where the library was built without ICU.
    explicit Splitter(const std::string& name);
    /// By expressions in ICU's syntax, each of which cuts the pieces of those before it. Without
    /// any a text is one piece, for which ICU is not needed. Throws Error(unsupported) for one that
    /// ICU cannot compile.
    Splitter(std::vector<std::string> patterns, bool whole_pieces);
    ~Splitter();
    Splitter(Splitter&&) noexcept;
    Splitter& operator=(Splitter&&) noexcept;

    /// The pieces of a text in UTF-8, in order, which together are the text. Not for several
    /// threads at a time. Throws Error(unsupported) where an expression takes too long.
    std::vector<std::string_view> split(std::string_view text) const;
    /// Whether a piece that is a token is not merged from its bytes.
    bool takes_whole_pieces() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The name that Splitter's first constructor has for expressions. Throws Error(unsupported) if
/// there is none.
std::string name_of_splitter(const std::vector<std::string>& patterns, bool whole_pieces);

/// The expressions of that name, and whether it takes whole pieces. Throws as Splitter's first
/// constructor.
const std::vector<std::string>& patterns_of_splitter(const std::string& name);
bool takes_whole_pieces(const std::string& name);

/// The expression of GPT-2.
std::string_view gpt2_pattern();

/// The text in Unicode's form NFC. Throws Error(unsupported) without ICU.
std::string composed(std::string_view text);

}  // namespace dlprim::language
