// SPDX-License-Identifier: MIT
// Writes OpenCL C text with the indentation of its blocks.
#pragma once

#include "base/text.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace dlprim::pointwise {

class SourceWriter {
  public:
    /// `depth` of the first line, in steps of four blanks.
    explicit SourceWriter(int depth) : depth_(depth) {}

    /// Writes a line that consists of the parts, as TextWriter writes them. C++ does not define the
    /// order in which arguments are evaluated, so at most one of them may use a kernel number for
    /// the first time (kernel_numbers.hpp).
    template <typename... Parts>
    void line(const Parts&... parts) {
        for (int i = 0; i < depth_; ++i) text_ << std::string_view("    ");
        (text_ << ... << parts) << '\n';
    }
    /// Writes a preprocessor line, which is not indented.
    template <typename... Parts>
    void directive(const Parts&... parts) {
        (text_ << ... << parts) << '\n';
    }
    /// Writes a line that opens a block, "... {" or only "{". The lines that follow are indented by
    /// one step.
    template <typename... Parts>
    void open(const Parts&... parts) {
        if constexpr (sizeof...(parts) > 0)
            line(parts..., " {");
        else
            line('{');
        ++depth_;
    }
    void close() {
        --depth_;
        line('}');
    }
    /// For the only statement of a loop without braces.
    void deeper() { ++depth_; }
    void shallower() { --depth_; }

    const std::string& str() const { return text_.str(); }

  private:
    TextWriter text_;
    int depth_;
};

}  // namespace dlprim::pointwise
