// SPDX-License-Identifier: MIT
// Writer of OpenCL C: lines at the indentation of the block that they stand in.
#pragma once

#include "base/text.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace dlprim::pointwise {

class SourceWriter {
  public:
    /// `depth`: of the first line, in steps of four blanks.
    explicit SourceWriter(int depth) : depth_(depth) {}

    /// A line of the parts, one behind the other, each as TextWriter writes it. C++ does not say
    /// in which order the arguments of a call are evaluated: at most one of them may name a kernel
    /// number for the first time (kernel_numbers.hpp).
    template <typename... Parts>
    void line(const Parts&... parts) {
        for (int i = 0; i < depth_; ++i) text_ << std::string_view("    ");
        (text_ << ... << parts) << '\n';
    }
    /// A line of the preprocessor, which is not indented.
    template <typename... Parts>
    void directive(const Parts&... parts) {
        (text_ << ... << parts) << '\n';
    }
    /// The line that opens a block, "... {" or "{" alone; what follows stands one step deeper.
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
    /// Around the only statement of a loop that has no braces.
    void deeper() { ++depth_; }
    void shallower() { --depth_; }

    const std::string& str() const { return text_.str(); }

  private:
    TextWriter text_;
    int depth_;
};

}  // namespace dlprim::pointwise
