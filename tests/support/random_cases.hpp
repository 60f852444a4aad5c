// SPDX-License-Identifier: MIT
// Seeded random problems: valid options and small shapes for every operator.
#pragma once

#include "support/cases.hpp"

#include <string>
#include <string_view>

namespace dlprim::testing {

bool has_random_cases(std::string_view type);

/// The problem of this number, which is the same on every machine. Throws std::runtime_error if the
/// generator finds nothing that the operator accepts.
Case random_case(const std::string& type, unsigned number);

}  // namespace dlprim::testing
