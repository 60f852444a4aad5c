// SPDX-License-Identifier: MIT
// The text of kernels that run many calls of one kernel in one launch: the kernel's own text with
// another head, which looks for the row of its work-group in a table (kernels/engine/
// call_batch.clh) and reads from there what was an argument before. The rest stays as it was, so
// that results have the same bits.
#pragma once

#include "engine/launch.hpp"
#include "runtime/kernel_parameters.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlprim {

/// Where a parameter of the calls' kernel comes from.
enum class BatchRole {
    parameter,  ///< is a parameter of the batch's kernel too, the same for all calls
    row,        ///< is in the row
    memory,     ///< a pointer to one of the batch's memories, whose number is in the row
};

/// Pointers to memories are `batch_memory_0`, ... in the batch's kernel.
struct BatchText {
    /// Whether the kernel may ask for the size of its range, which is the row's second int then, in
    /// work-groups.
    bool sizes = false;
    std::vector<KernelParameter> parameters;
    std::vector<BatchRole> roles;  ///< by parameter
    int memories = 0;

    /// Ints of a row's head: the first work-group, and the number of work-groups with `sizes`.
    std::size_t head_words() const { return sizes ? 2 : 1; }
    /// Ints of a row: the head, then what is in the row.
    std::size_t row_words() const;
    /// Ints that the row has for a parameter.
    std::size_t words(std::size_t parameter) const;
    ProgramSource source(const KernelCall& call, const KernelDefinition& kernel) const;

  private:
    std::string choice_of_memory() const;
    std::string head() const;
};

bool is_pointer(const KernelParameter& parameter);
/// The definition of the call's kernel, if the text can be used so: the range has one dimension,
/// work-groups have a given size, and, without `sizes`, the kernel asks for no size of the range.
std::optional<KernelDefinition> batchable(const KernelCall& call, bool sizes);
/// Calls with equal keys have equal texts.
std::string batch_text_key(const KernelCall& call);

}  // namespace dlprim
