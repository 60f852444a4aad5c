// SPDX-License-Identifier: MIT
// CallBatch: many small, independent calls of one kernel in one launch.
//
// A launch of a GPU takes 5 us or more, however little it does. The calls of a batch differ in
// their sizes and in the places of their operands. These are in a table in device memory, one row
// per call. The batch's kernel is the text of the calls' kernel with another head: it looks for
// the row of its work-group and reads from there what was an argument before. What follows is the
// kernel as it was, so results have the same bits. docs/engines/joined_launches.md has a picture.
#pragma once

#include "engine/launch.hpp"
#include "runtime/kernel_parameters.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// A call of a batch. Its operands begin at this operand of the batch's launch.
struct BatchedCall {
    const KernelCall* call;
    int first_operand;
};

/// Calls with equal texts may form a batch if they read one buffer and write to another one.
/// Returns nothing if the call cannot be in a batch: its range has one dimension, its
/// work-groups have a given size, it reads one tensor through a pointer to const and writes to one
/// other, and its kernel asks for no size of the whole range.
std::optional<std::string> batch_key(const KernelCall& call);

/// The operands of each call follow each other. What the calls read must be in one buffer, and what
/// they write must be in one buffer.
class CallBatch : public Launch {
  public:
    /// All calls (at least one) have the same batch_key(). They are not needed afterwards.
    CallBatch(ContextImpl& context, std::span<const BatchedCall> calls);

    /// Writes the table before the first launch, and again after an operand was moved. It waits for
    /// that.
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override;
    void compile() override { kernel_->compile(); }

  private:
    /// The offset of an operand in the table.
    struct Patch {
        std::size_t word;
        int operand, side;
        std::uint64_t extra_bytes, element_bytes;
        std::uint64_t bound_offset;  ///< in elements; in the table
    };
    /// A buffer that all calls read, or to which all write.
    struct Side {
        int index = 0;               ///< of the kernel's parameter
        std::uint64_t bound_id = 0;  ///< of the buffer that was bound last
    };

    void add_row(const KernelCall& call, int first_operand,
                 const std::vector<KernelParameter>& parameters);

    std::shared_ptr<Program> program_;
    std::unique_ptr<Kernel> kernel_;
    NDRange range_;
    std::vector<Patch> patches_;
    Side sides_[2];
    std::vector<std::int32_t> words_;  ///< the host copy of the table
    std::shared_ptr<Buffer> table_;
    bool written_ = false;
};

}  // namespace dlprim
