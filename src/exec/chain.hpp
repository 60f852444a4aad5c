// SPDX-License-Identifier: MIT
// Chain: the kernel calls of many steps as one launch, for CPUs.
//
// Starting a kernel means waking threads that sleep, which takes longer than a small layer's work:
// with 50 layers in 5 ms, cores spend half of the time asleep. A chain's threads wake once and hand
// the layers to each other by counters in memory (kernels/exec/chain.cl). Its program holds each
// distinct kernel of its calls as a function.
#pragma once

#include "plan/plan.hpp"
#include "runtime/context_impl.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

class Chain {
  public:
    /// Compiles the chain of these steps (of Plan::chains), in order. Throws Error.
    Chain(ContextImpl& context, std::vector<const Step*> steps);

    /// Enqueues all work of the steps. `resolve` finds the memory of a place. False, with a line in
    /// the log, where the driver refuses: then nothing has been enqueued.
    bool enqueue(const std::function<BufferRef(const Place&)>& resolve);

  private:
    struct Slot {  // a buffer parameter
        Place place;
        std::uint64_t bound_id = 0;  // of the buffer last bound
        std::uint64_t offset = 0;    // in bytes, of where `place` began then
    };
    struct Patch {  // where an offset stands in the table
        std::size_t word;
        std::size_t slot;
        std::uint64_t extra_bytes;
        std::size_t element_bytes;
    };
    int slot_of(const Place& place);
    void add_call(const KernelCall& call, const Step& step);

    ContextImpl& context_;
    std::shared_ptr<Program> program_;
    std::unique_ptr<Kernel> kernel_;
    std::vector<Slot> slots_;
    std::vector<Patch> patches_;
    std::vector<std::vector<std::int32_t>> rows_;
    std::vector<std::int32_t> ends_;   // rows behind the last of each launch
    std::vector<std::int32_t> words_;  // the table on the host
    std::shared_ptr<Buffer> table_, state_;
    std::string functions_, cases_;
    std::vector<std::string> known_;  // functions by number: kernel, options and text
    int tickets_ = 0, workers_ = 1;
};

}  // namespace dlprim
