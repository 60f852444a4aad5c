// SPDX-License-Identifier: MIT
// Roles: which tensors of a net are the examples, their targets, the outputs to judge and the loss.
#pragma once

#include <dlprim/net.hpp>

#include <string>

namespace dlprim {

/// Names of tensors of a net that is trained.
struct Roles {
    std::string images, labels;  ///< inputs: the examples, and what they should come out as
    std::string scores, loss;    ///< outputs
};

/// Throws Error(invalid_argument) if the net lacks one of them that training needs.
Roles roles_of(Net& net);

}  // namespace dlprim
