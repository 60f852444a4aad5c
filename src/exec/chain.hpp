// SPDX-License-Identifier: MIT
// Chain: runs the kernel calls of many steps in one launch, for CPUs.
//
// A kernel launch wakes sleeping threads, which takes longer than the work of a small layer: with
// 50 layers in 5 ms, cores sleep half of the time. The threads of a chain wake once and synchronise
// between layers by counters in memory (kernels/exec/chain.cl). The chain's program contains each
// distinct kernel of its calls as a function.
#pragma once

#include "engine/launch.hpp"
#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class Chain {
  public:
    /// Compiles the chain of these steps (of Plan::chains), in order. Throws Error.
    Chain(ContextImpl& context, std::vector<const Step*> steps);

    /// Enqueues all work of the steps. `resolve` returns the memory of a place. If the driver
    /// refuses the launch, logs a line, enqueues nothing and returns false.
    bool enqueue(const std::function<BufferRef(const Place&)>& resolve);

    /// Whether the chain's program has the kernels of these calls.
    bool has(std::span<const KernelCall> calls) const;
    /// Enqueues calls for which has() is true, each by itself, and waits for them. `operands` as
    /// for Launch::enqueue(), all in one buffer. Checks of engines use this: the program is
    /// compiled already.
    void run(std::span<const KernelCall> calls, std::span<const BufferRef> operands);

  private:
    struct Slot {  // a buffer parameter
        Place place;
        std::uint64_t bound_id = 0;  // of the buffer that was bound last
        std::uint64_t offset = 0;    // the byte offset that `place` had then
    };
    struct Patch {  // the position of an offset in the table
        std::size_t word;
        std::size_t slot;
        std::uint64_t extra_bytes;
        std::size_t element_bytes;
    };
    /// What the arguments of a row stand for.
    struct Row {
        std::vector<std::int32_t> words;
        /// Words that are an offset, with the call's binding that says of what.
        std::vector<std::pair<std::size_t, const KernelCall::Binding*>> offsets;
    };
    /// The row of a call. `slot_of_operand` numbers the buffers.
    Row row_of(const KernelCall& call, int number, int tickets,
               const std::function<int(int)>& slot_of_operand) const;
    int number_of(const KernelCall& call) const;
    int slot_of(const Place& place);
    void add_call(const KernelCall& call, const Step& step);

    ContextImpl& context_;
    std::shared_ptr<Program> program_;
    std::unique_ptr<Kernel> kernel_;
    std::vector<Slot> slots_;
    std::vector<Patch> patches_;
    std::vector<std::vector<std::int32_t>> rows_;
    std::vector<std::int32_t> ends_;   // one past the last row of each launch
    std::vector<std::int32_t> words_;  // the host copy of the table
    std::shared_ptr<Buffer> table_, state_;
    std::string functions_, cases_;
    std::vector<std::string> known_;  // functions by number: hash of kernel, options and source
    std::size_t row_ = 0;             // words of a row
    int tickets_ = 0, workers_ = 1;
};

}  // namespace dlprim
