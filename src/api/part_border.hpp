// SPDX-License-Identifier: MIT
// PartBorder: how a net that is a part of a larger one (api/placement) meets the other parts: which
// gradients cross the border, and the memory of what does.
#pragma once

#include "train/update.hpp"

#include <dlprim/tensor.hpp>

#include <map>
#include <set>
#include <string>

namespace dlprim {

struct PartBorder {
    /// Inputs whose gradient backward computes. It computes no other input's.
    std::set<std::string> wanted;
    /// Those of them that later parts read, too: what flowed back from these is the input
    /// "@later/NAME", to which backward adds.
    std::set<std::string> continued;
    /// Outputs that later parts read: what flowed back from these is the input "@grad/NAME".
    std::set<std::string> seeded;
    WholeNet whole;  ///< what the update must know of the other parts
};

/// Memory that plans of a net bind, in place of new memory, by name.
struct GivenMemory {
    std::map<std::string, Tensor> inputs;  ///< with "@later/NAME" and "@grad/NAME"
    std::map<std::string, Tensor> outputs, gradients;
};

}  // namespace dlprim
