// SPDX-License-Identifier: MIT
// CallTable: calls of kernels as rows of a table in device memory, for a kernel that makes them all
// in one launch: TableLaunch on GPUs and for lists of tensors, Chain on CPUs.
//
// OpenCL 1.2 has no pointers in memory, so that a row cannot name tensors by address. But tensors
// share few cl_mems: blocks of a plan, segments of the pool (runtime/block_pool.hpp). Those are
// parameters of the kernel that runs the table. A row has a head, which belongs to that kernel, and
// then the struct of arguments (engine/kernel_function.hpp), in which a tensor is the number of its
// memory and an offset.
#pragma once

#include "engine/kernel_function.hpp"
#include "engine/launch.hpp"
#include "runtime/event_impl.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// A call, and where its operands begin among those of the launch.
struct PlacedCall {
    const KernelCall* call;
    std::size_t first_operand;
};

/// For one thread at a time.
class CallTable {
  public:
    /// At most `most_memories` cl_mems are parameters of a launch. Rows have `row_bytes` bytes, or
    /// as many as the longest needs.
    CallTable(ContextImpl& context, std::size_t most_memories, std::size_t row_bytes = 0)
        : context_(context), most_memories_(most_memories), row_bytes_(row_bytes) {}
    ~CallTable();
    CallTable(const CallTable&) = delete;
    CallTable& operator=(const CallTable&) = delete;

    /// Adds a row. `head` has an even number of ints, the same for all rows. The call is not needed
    /// afterwards.
    void add(const PlacedCall& placed, const KernelFunction& function,
             std::span<const std::int32_t> head);
    std::size_t row_bytes() const { return row_bytes_; }
    std::size_t rows() const { return rows_.size(); }

    /// Rows of one launch, on the device.
    struct Part {
        std::size_t first = 0, end = 0;     ///< rows
        std::vector<std::size_t> memories;  ///< by number: an operand that lies there
        std::shared_ptr<Buffer> table;

      private:
        friend class CallTable;
        /// A copy that is on its way to the device.
        struct Upload {
            std::vector<std::byte> bytes;
            std::shared_ptr<EventImpl> done;
        };
        std::vector<std::byte> bytes;
        std::array<Upload, 4> uploads;
        std::size_t next = 0;
    };
    /// Writes where the operands are into the rows, and uploads these if anything has moved. Does
    /// not wait, except for an upload of some calls ago. There is more than one part if operands
    /// lie in more memories than a launch can have.
    std::span<const Part> place(Queue& queue, std::span<const BufferRef> operands);

  private:
    /// What a row gets from an operand: an int at one place and a ulong at the other.
    struct Patch {
        std::size_t memory_at, offset_at, operand;
        std::uint64_t extra_bytes, element_bytes;
    };
    struct Row {
        std::vector<std::byte> bytes;
        std::vector<Patch> patches;
    };
    bool add_row(Part& part, std::vector<std::byte>& bytes, const Row& row,
                 std::span<const BufferRef> operands) const;
    void upload(Queue& queue, Part& part, std::vector<std::byte> bytes);

    ContextImpl& context_;
    std::size_t most_memories_, row_bytes_;
    std::size_t used_ = 0;  ///< parts
    std::vector<Row> rows_;
    std::vector<Part> parts_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> placed_;  ///< ids and offsets of operands
};

/// The call of a kernel that runs a table. It has the parameters that table_parameters() declares.
class TableKernel {
  public:
    TableKernel(const std::shared_ptr<Program>& program, std::string_view kernel,
                const NDRange& range, std::size_t memories)
        : call(program, kernel, range), bound_(memories + 1) {}

    std::size_t memories() const { return bound_.size() - 1; }
    /// Binds the table and the memories of a part.
    void bind(const CallTable::Part& part, std::span<const BufferRef> operands);

    KernelCall call;

  private:
    std::vector<std::uint64_t> bound_;  ///< ids of the memories and of the table
};

/// "global const uchar* calls_table, global uchar* calls_memory_0, ...": for so many memories.
std::string table_parameters(std::size_t memories);
/// ", calls_memory_0, ...", with `before` in front of each.
std::string table_memories(std::size_t memories, std::string_view before);

}  // namespace dlprim
