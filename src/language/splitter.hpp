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
    ~Splitter();
    Splitter(Splitter&&) noexcept;
    Splitter& operator=(Splitter&&) noexcept;

    /// The pieces of a text in UTF-8, in order, which together are the text. Not for several
    /// threads at a time.
    std::vector<std::string_view> split(std::string_view text) const;
    /// Whether a piece that is a token is not merged from its bytes.
    bool takes_whole_pieces() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace dlprim::language
