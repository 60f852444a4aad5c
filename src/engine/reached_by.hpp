// SPDX-License-Identifier: MIT
// ReachedBy: what an engine derives from beside Engine if no call of an operator leads to it.
#pragma once

#include <string_view>

namespace dlprim {

class ReachedBy {
  public:
    virtual ~ReachedBy() = default;
    /// What alone leads to it: "the pass that marks small integers".
    virtual std::string_view reached_by() const = 0;
};

}  // namespace dlprim
