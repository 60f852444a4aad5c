// SPDX-License-Identifier: MIT
// Kernels as functions of another program: what chains (exec/chain.hpp) are made of.
#pragma once

#include "runtime/program.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace dlprim {

class KernelCall;

/// A kernel's text made a function `name`_`number`, with `(int, int, int)` global ids before its
/// own parameters; all other names that the text declares or defines are out of the way of other
/// texts. Nothing where the kernel looks at its work-group, or has options other than -D and
/// flush_subnormals.
std::optional<std::string> kernel_as_function(const ProgramSource& source, int number);

/// Ints that an argument of this type takes in a table of calls; 0 where it cannot be there.
std::size_t argument_words(const std::string& type);

/// Whether all these calls (at least one) can be made of functions: one work-item a work-group.
bool are_functions(std::span<const KernelCall> calls);

}  // namespace dlprim
