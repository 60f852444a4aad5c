// SPDX-License-Identifier: MIT
// The table of cases (tests/cases/*.json), for tests.
#pragma once

#include "check/cases.hpp"

#include <string>
#include <vector>

namespace dlprim::testing {

/// All cases of all files in `folder`, by file name. Throws Error, which names the file, on unknown
/// contents.
std::vector<Case> load_cases(const std::string& folder);

}  // namespace dlprim::testing
