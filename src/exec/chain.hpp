// SPDX-License-Identifier: MIT
// Chain: runs the kernel calls of many steps in one launch, for CPUs.
//
// A kernel launch wakes sleeping threads, which takes longer than the work of a small layer: with
// 50 layers in 5 ms, cores sleep half of the time. The threads of a chain wake once and synchronise
// between layers by counters in memory (kernels/exec/chain.cl). The chain's program has each kernel
// of its calls as a function (plan/chain_program.hpp), and a table has the calls
// (engine/call_table.hpp).
#pragma once

#include "engine/call_table.hpp"
#include "plan/chain_program.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dlprim {

class Chain {
  public:
    /// A chain of these steps (of Plan::chains), in order, whose kernels the program has. Compiles
    /// the program if that was postponed. Throws Error.
    Chain(ContextImpl& context, std::shared_ptr<const ChainProgram> program,
          std::span<const Step> steps);

    /// Enqueues all work of the steps. `resolve` returns the memory of a place. If the driver
    /// refuses the launch, logs a line, enqueues nothing and returns false.
    bool enqueue(const std::function<BufferRef(const Place&)>& resolve);

    /// Whether the chain's program has the kernels of these calls.
    bool has(std::span<const KernelCall> calls) const { return program_->has(calls); }
    /// Enqueues calls for which has() is true, and waits for them. `operands` as for
    /// Launch::enqueue(), all in one buffer. Checks of engines use this: the program is compiled
    /// already.
    void run(std::span<const KernelCall> calls, std::span<const BufferRef> operands);

  private:
    void add_row(CallTable& table, const PlacedCall& placed, std::size_t number, int most_tickets);
    void launch(const CallTable& table, const CallTable::Part& part,
                std::span<const BufferRef> operands, std::int32_t begin, std::int32_t end);

    ContextImpl& context_;
    std::shared_ptr<const ChainProgram> program_;
    const int workers_;
    CallTable table_;
    std::vector<Place> places_;       ///< the operands of all steps
    std::vector<std::int32_t> ends_;  ///< one past the last row of each launch
    std::shared_ptr<Buffer> state_;
    std::optional<TableKernel> kernel_;
    int tickets_ = 0;  ///< of the launch whose rows are being added
};

}  // namespace dlprim
