// SPDX-License-Identifier: MIT
// Kernels whose arguments come from a table (engine/call_table.hpp): in a struct whose members have
// the types and names of the kernel's parameters.
//
// A launch of many calls of one kernel gives that kernel another head (kernel_over_rows). A chain
// has many kernels, each as a function whose text stays as it is. Macros around it do what is
// needed: one of the kernel's name puts the group in front of its parameters, which is six ints:
// the position of the work-group in the call's range, and how many there are along each dimension.
// Others make the built-in functions of ids and sizes follow from it.
#pragma once

#include "runtime/kernel_parameters.hpp"
#include "runtime/program.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

class KernelCall;

/// Where a kernel's arguments come from, if rows of a table call it.
struct KernelFunction {
    enum class From : unsigned char {
        memory,  ///< a pointer: the member is the number of a memory
        row,     ///< the member is the value
        launch,  ///< a scalar that each run sets: a variable of the same name where it is called
    };
    struct Parameter : KernelParameter {
        From from = From::row;
        std::size_t at = 0;  ///< of the member in the struct; bytes is its size there
    };
    std::vector<Parameter> parameters;
    std::size_t bytes = 0;  ///< of the struct, a multiple of 8

    /// "struct NAME { ... };"
    std::string struct_text(std::string_view name) const;
    /// The call of `function` for the group, whose six ints are given, with the members of `row`, a
    /// pointer to the struct. Memories are calls_memory(number) there.
    std::string call_text(std::string_view function, std::string_view group,
                          std::string_view row) const;
    /// Variables that have the members' names and values.
    std::string variables_text(std::string_view row) const;
};

/// The same for the same kernel of the same text with the same options, and for no other.
std::string kernel_key(const KernelCall& call);

/// Nothing if the call's kernel cannot be such a function: a parameter has a type that a table
/// cannot hold, other functions of its text ask for ids, it may refuse something, or it has
/// sub-groups of a given size.
std::optional<KernelFunction> kernel_function(const KernelCall& call);

/// The text with other parameters for the kernel. Its body begins with `before`, which declares the
/// parameters of before as variables, and the group: calls_i, calls_j, calls_k, calls_width,
/// calls_height, calls_depth. A kernel with local memory must stay a kernel: OpenCL leaves open
/// what such a one does if another kernel calls it, and on PoCL work-groups share the memory then.
std::optional<std::string> kernel_over_rows(const ProgramSource& source, std::string_view kernel,
                                            const std::string& parameters,
                                            const std::string& before);

/// The text as functions NAME_`number` inside single_items(): a work-group is one work-item, so a
/// barrier does nothing, and local memory is private. Its other names are made unique, too. Returns
/// nothing if the kernel copies asynchronously as a work-group, or has options other than -D and
/// flush_subnormals.
std::optional<std::string> numbered_functions(const ProgramSource& source, int number);
std::string single_items(const std::string& functions);

/// Whether all of these calls (at least one) can be numbered functions: they have one work-item per
/// work-group, no scalars that each run sets and no parameter that is a struct.
bool are_functions(std::span<const KernelCall> calls);

}  // namespace dlprim
