// SPDX-License-Identifier: MIT
// TableLaunch: many independent calls of one kernel in one launch, or a few.
//
// A launch of a GPU takes 5 us or more, however little it does. The calls of a table differ in
// their sizes and in the places of their operands, which are in the table's rows (CallTable). The
// program is that of the calls with another head for the kernel, which looks for the row of its
// work-group and reads the arguments there. What follows is the kernel as it was, so results have
// the same bits.
// docs/engines/joined_launches.md has a picture.
#pragma once

#include "engine/call_table.hpp"

#include <optional>

namespace dlprim {

class TableLaunch : public Launch {
  public:
    /// Calls with equal keys may share a launch. Nothing if the call cannot: its range has one
    /// dimension, its work-groups have a given size, and its kernel can be a function
    /// (engine/kernel_function.hpp).
    static std::optional<std::string> key(const KernelCall& call);

    /// All calls (at least one) have the same key(). They are not needed afterwards.
    TableLaunch(ContextImpl& context, std::span<const PlacedCall> calls);

    /// All calls may run at the same time, so that none may write what another reads. Waits only
    /// for a table of some calls ago. Compiles where tensors lie in more memories than in any call
    /// before.
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;
    void compile() override { kernels_[0].call.compile(); }
    std::span<const KernelCall> reported_calls() const override { return {&kernels_[0].call, 1}; }
    void set_scalars(std::span<const Scalar> values) override;

    /// The most cl_mems of one launch. All devices have 1024 bytes for parameters.
    static constexpr std::size_t most_memories = 64;

  private:
    TableKernel& kernel_for(std::size_t memories);
    ProgramSource source(std::size_t memories) const;

    ContextImpl& context_;
    KernelCall call_;  ///< the first
    KernelFunction function_;
    CallTable table_;
    std::vector<std::size_t> groups_;   ///< the first of each row, then their number
    std::vector<TableKernel> kernels_;  ///< for 4, 16, 64 memories
    std::vector<Scalar> scalars_;
};

/// Whether the call reads nothing but its launch's first operand, through pointers to const, and
/// writes to nothing but the second one.
bool is_copy(const KernelCall& call);

}  // namespace dlprim
