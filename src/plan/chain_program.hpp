// SPDX-License-Identifier: MIT
// ChainProgram: a program that has many kernels as functions, for launches that run many steps
// (exec/chain.hpp). Its text follows from the set of these kernels alone: sizes are in the table of
// calls, and the functions are in the order of their keys.
#pragma once

#include "engine/kernel_function.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

class ChainProgram {
  public:
    /// Calls by kernel_key(), one for each kernel.
    using Kernels = std::map<std::string, const KernelCall*>;
    /// So many cl_mems can be parameters of a launch: devices allow at least 1024 bytes of them.
    static constexpr std::size_t most_memories = 96;

    /// The program for these steps, whose calls can be functions (engine/kernel_function.hpp).
    /// Plans of a device whose chains have the same kernels share it. Under BuildsLater it is
    /// compiled later. Throws Error.
    static std::shared_ptr<const ChainProgram> of(ContextImpl& context,
                                                  std::span<const Step> steps);
    ChainProgram(ContextImpl& context, const Kernels& kernels, std::size_t memories);

    /// The number of the function for a call, or the number of functions if there is none.
    std::size_t number_of(const KernelCall& call) const;
    bool has(std::span<const KernelCall> calls) const;
    const KernelFunction& arguments(std::size_t number) const {
        return functions_[number].arguments;
    }
    /// As many cl_mems can be parameters of a launch.
    std::size_t memories() const { return memories_; }
    const std::shared_ptr<Program>& program() const { return program_; }

  private:
    struct Function {
        std::string key;  ///< kernel_key() of its calls
        KernelFunction arguments;
        ProgramSource source;
        std::string kernel;
    };
    ProgramSource source(const Traits& device) const;

    std::vector<Function> functions_;  ///< by key
    std::size_t memories_ = 0;
    std::shared_ptr<Program> program_;
};

}  // namespace dlprim
