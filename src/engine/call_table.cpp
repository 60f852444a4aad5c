// SPDX-License-Identifier: MIT
// CallTable: rows, where operands are, and uploads.
#include "engine/call_table.hpp"

#include "base/text.hpp"
#include "runtime/opencl_program.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace dlprim {

CallTable::~CallTable() {
    if (opencl_gone()) return;
    for (Part& part : parts_)
        for (Part::Upload& upload : part.uploads) try {
                if (upload.done) upload.done->wait();
            } catch (const std::exception&) {
                // Whoever waits for the queue is told.
            }
}

void CallTable::add(const PlacedCall& placed, const KernelFunction& function,
                    std::span<const std::int32_t> head) {
    const KernelCall& call = *placed.call;
    Row row;
    row.bytes.resize(head.size_bytes() + function.bytes);
    std::memcpy(row.bytes.data(), head.data(), head.size_bytes());
    const auto at = [&](int parameter) {
        return head.size_bytes() + function.parameters[static_cast<std::size_t>(parameter)].at;
    };
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
        const std::uint64_t bits = call.scalar_bits(static_cast<int>(i));
        const std::size_t size = function.parameters[i].bytes;
        if (size > 0) std::memcpy(&row.bytes[at(static_cast<int>(i))], &bits, size);
    }
    for (const KernelCall::Binding& binding : call.bindings())
        row.patches.push_back({at(binding.buffer_index), at(binding.offset_index),
                               placed.first_operand + static_cast<std::size_t>(binding.operand),
                               binding.extra_bytes, binding.element_bytes});
    row_bytes_ = std::max(row_bytes_, row.bytes.size());
    rows_.push_back(std::move(row));
}

/// Adds a row with the places of its operands. Returns false if it needs memories that the part
/// cannot have beside those of its other rows.
bool CallTable::add_row(Part& part, std::vector<std::byte>& bytes, const Row& row,
                        std::span<const BufferRef> operands) const {
    const std::size_t begin = bytes.size(), known = part.memories.size();
    bytes.resize(begin + row_bytes_);
    std::memcpy(&bytes[begin], row.bytes.data(), row.bytes.size());
    for (const Patch& patch : row.patches) {
        const BufferRef& ref = operands[patch.operand];
        require(ref.buffer != nullptr, "operand ", patch.operand,
                " of a table of calls is not bound");
        auto found =
            std::find_if(part.memories.begin(), part.memories.end(), [&](std::size_t operand) {
                return operands[operand].buffer->handle() == ref.buffer->handle();
            });
        if (found == part.memories.end()) found = part.memories.insert(found, patch.operand);
        const auto memory = static_cast<std::int32_t>(found - part.memories.begin());
        const std::uint64_t offset =
            (ref.handle_offset() + patch.extra_bytes) / patch.element_bytes;
        std::memcpy(&bytes[begin + patch.memory_at], &memory, sizeof(memory));
        std::memcpy(&bytes[begin + patch.offset_at], &offset, sizeof(offset));
    }
    if (part.memories.size() <= most_memories_ || begin == 0) return true;
    bytes.resize(begin);
    part.memories.resize(known);
    return false;
}

std::span<const CallTable::Part> CallTable::place(Queue& queue,
                                                  std::span<const BufferRef> operands) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    places.reserve(operands.size());
    for (const BufferRef& ref : operands)
        places.emplace_back(ref.buffer == nullptr ? 0 : ref.buffer->id(),
                            ref.buffer == nullptr ? 0 : ref.handle_offset());
    if (places == placed_) return {parts_.data(), used_};
    placed_.clear();
    used_ = 0;
    for (std::size_t row = 0; row < rows_.size(); ++used_) {
        if (parts_.size() == used_) parts_.emplace_back();
        Part& part = parts_[used_];
        std::vector<std::byte> bytes;
        part.memories.clear();
        part.first = row;
        while (row < rows_.size() && add_row(part, bytes, rows_[row], operands)) ++row;
        part.end = row;
        upload(queue, part, std::move(bytes));
    }
    placed_ = std::move(places);
    return {parts_.data(), used_};
}

void CallTable::upload(Queue& queue, Part& part, std::vector<std::byte> bytes) {
    if (part.bytes == bytes) return;
    if (!part.table || part.table->bytes() < bytes.size())
        part.table = context_.allocate(bytes.size());  // no block: the kernel takes no offset
    Part::Upload& copy = part.uploads[part.next++ % part.uploads.size()];
    if (copy.done) copy.done->wait();
    copy.bytes = bytes;
    queue.write({part.table.get(), 0}, copy.bytes.data(), copy.bytes.size(), false);
    copy.done = context_.record({});
    part.bytes = std::move(bytes);
}

void TableKernel::bind(const CallTable::Part& part, std::span<const BufferRef> operands) {
    require(part.memories.size() <= memories(), "a table of calls needs ", part.memories.size(),
            " memories, and its kernel has ", memories());
    for (std::size_t i = 0; i < memories(); ++i) {
        // What is not needed is bound as well: no parameter may be left without a value.
        const std::size_t operand = part.memories[i < part.memories.size() ? i : 0];
        const Buffer& memory = *operands[operand].buffer;
        if (bound_[i] != memory.id()) call.memory(cat("calls_memory_", i), memory);
        bound_[i] = memory.id();
    }
    if (bound_[memories()] != part.table->id()) call.memory("calls_table", *part.table);
    bound_[memories()] = part.table->id();
}

std::string table_parameters(std::size_t memories) {
    return cat("global const uchar* calls_table", table_memories(memories, "global uchar* "));
}

std::string table_memories(std::size_t memories, std::string_view before) {
    std::string list;
    for (std::size_t i = 0; i < memories; ++i) list += cat(", ", before, "calls_memory_", i);
    return list;
}

}  // namespace dlprim
