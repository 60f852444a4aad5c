// SPDX-License-Identifier: MIT
// Problems with other layouts.
#pragma once

#include "engine/engine.hpp"

namespace dlprim {

/// The problem with its operands in the layouts of a choice.
Problem with_layouts(Problem problem, const LayoutChoice& layouts);

/// The problem with all layouts plain.
Problem plain_problem(Problem problem);

}  // namespace dlprim
