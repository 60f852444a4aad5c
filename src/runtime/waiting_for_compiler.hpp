// SPDX-License-Identifier: MIT
// WaitingForCompiler: tells the receiver of set_compile_wait() about a wait.
#pragma once

namespace dlprim {

/// Inside the wait of another, of whatever thread, it tells nothing.
class WaitingForCompiler {
  public:
    explicit WaitingForCompiler(int programs);
    ~WaitingForCompiler();
    WaitingForCompiler(const WaitingForCompiler&) = delete;
    WaitingForCompiler& operator=(const WaitingForCompiler&) = delete;

    /// So many are done. Throws what the receiver throws.
    void at(int done) const;

  private:
    bool outermost_;
    int programs_;
};

}  // namespace dlprim
