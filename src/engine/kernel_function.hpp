// SPDX-License-Identifier: MIT
// Converts kernels to functions of another program, for chains (exec/chain.hpp).
#pragma once

#include "runtime/program.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace dlprim {

class KernelCall;

/// Converts a kernel's text to a function `name`_`number` for work-groups of one work-item. Its
/// first six parameters are ints: the global ids and the global sizes. All other names that the
/// text declares or defines are made unique. The result compiles inside functions_text(). Returns
/// nothing if the kernel copies asynchronously as a work-group, or has options other than -D and
/// flush_subnormals.
std::optional<std::string> kernel_as_function(const ProgramSource& source, int number);

/// Texts of kernel_as_function(), in which a work-group is one work-item: built-in functions of ids
/// and sizes follow from the function's parameters, a barrier does nothing, and local memory is
/// private.
std::string functions_text(const std::string& functions);

/// The number of ints that an argument of this type takes in a table of calls, or 0 if it cannot be
/// in the table.
std::size_t argument_words(const std::string& type);

/// Whether all of these calls (at least one) can become functions: they have one work-item per
/// work-group.
bool are_functions(std::span<const KernelCall> calls);

}  // namespace dlprim
