// SPDX-License-Identifier: MIT
// ManyCalls: calls of one kernel on many tensors, wherever these lie, in one launch or a few.
//
// OpenCL 1.2 has no pointers in memory, so that a table cannot name tensors by address. But tensors
// share few cl_mems, the segments of the pool (runtime/block_pool.hpp), and those are parameters of
// the kernel. A row of the table (engine/batch_text.hpp) says in which of them each of a call's
// tensors lies, and at which offset. Where tensors lie in more cl_mems than a kernel may have
// parameters, there are several launches.
#pragma once

#include "engine/batch_text.hpp"
#include "runtime/event_impl.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// A call, and where its operands begin in those of the launch.
struct PlacedCall {
    const KernelCall* call;
    std::size_t first_operand;
};

/// Values that stand for the scalars p0, p1, ... of a Pointwise program while its kernel is made,
/// so that its parameters can be told from each other. All types have them exactly.
double scalar_mark(std::size_t number);

/// For one thread at a time.
class ManyCalls {
  public:
    /// Calls with equal keys may form one object. Nothing if the call cannot be in one.
    static std::optional<std::string> key(const KernelCall& call);

    /// All calls (at least one) have the same key(). They are not needed afterwards. Parameters
    /// that hold a scalar_mark() are arguments of each launch. Compiles.
    ManyCalls(ContextImpl& context, std::span<const PlacedCall> calls);

    /// Enqueues all calls. They may run at the same time, so that none may write what another
    /// reads. Does not wait, except for a table of some calls ago. Compiles where tensors lie in
    /// more memories than in any call before.
    void enqueue(std::span<const BufferRef> operands, std::span<const double> scalars);

    /// The most cl_mems of one launch. All devices have 1024 bytes for parameters.
    static constexpr int most_memories = 64;

  private:
    /// A parameter that each launch gets: as float, or as a long with an integer or a double's
    /// bits.
    struct Argument {
        enum class Kind { real, whole, bits } kind;
        std::string name;
        std::size_t number;
    };
    /// What the row of a call gets from an operand.
    struct Patch {
        std::size_t memory_word, offset_word;
        std::size_t operand;
        std::uint64_t extra_bytes, element_bytes;
    };
    struct Row {
        std::vector<std::int32_t> words;
        std::vector<Patch> patches;
        std::int32_t groups;
    };
    /// The kernel for so many memories.
    struct Variant {
        int memories = 0;
        std::shared_ptr<Program> program;
        std::unique_ptr<Kernel> kernel;
        std::vector<std::uint64_t> bound;  ///< ids
        int table = 0, rows = 0;
    };
    /// A launch's table on the device, and the copies of it that are on their way there.
    struct Table {
        std::shared_ptr<Buffer> memory;
        std::vector<std::int32_t> words;
        struct Upload {
            std::vector<std::int32_t> words;
            std::shared_ptr<EventImpl> done;
        };
        std::array<Upload, 4> uploads;
        std::size_t next = 0;
    };

    void find_arguments(const KernelCall& call);
    void add_row(const PlacedCall& placed);
    Variant& variant_for(std::size_t memories);
    std::size_t fill_table(std::size_t first, std::span<const BufferRef> operands,
                           std::vector<const Buffer*>& memories, std::vector<std::int32_t>& words);
    void upload(Table& table, const std::vector<std::int32_t>& words);
    void launch(Variant& variant, const Table& table, const std::vector<const Buffer*>& memories,
                std::span<const double> scalars, std::size_t groups);

    ContextImpl& context_;
    KernelCall call_;  ///< the first
    KernelDefinition definition_;
    BatchText text_;
    std::vector<Argument> arguments_;
    std::vector<Row> rows_;
    std::vector<Variant> variants_;
    std::vector<Table> tables_;  ///< by launch
};

}  // namespace dlprim
