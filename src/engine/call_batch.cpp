// SPDX-License-Identifier: MIT
// CallBatch: the text of the batch's kernel, its table, and the launch.
#include "engine/call_batch.hpp"

#include "base/text.hpp"
#include "engine/batch_text.hpp"
#include "engine/kernel_function.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Which of the calls' two tensors a parameter belongs to.
enum SideOf : int { reads, writes };

/// reads or writes for a pointer.
SideOf side_of(const KernelParameter& parameter) {
    return (' ' + parameter.type).find(" const ") != std::string::npos ? reads : writes;
}

/// Whether the calls in a batch cannot depend on each other, and the table can hold the arguments.
bool has_two_sides(const KernelCall& call, const std::vector<KernelParameter>& parameters) {
    if (call.bindings().size() != 2 || call.may_refuse()) return false;
    bool seen[2] = {};
    for (const KernelCall::Binding& binding : call.bindings()) {
        const SideOf side = side_of(parameters.at(static_cast<std::size_t>(binding.buffer_index)));
        if (binding.operand != side) return false;
        seen[side] = true;
    }
    const bool fit = std::all_of(parameters.begin(), parameters.end(), [](const auto& parameter) {
        return argument_words(parameter.type) > 0;
    });
    return fit && seen[reads] && seen[writes];
}

/// Pointers stay parameters, and all else is in the row.
BatchText text_of(const std::vector<KernelParameter>& parameters) {
    BatchText text;
    text.parameters = parameters;
    for (const KernelParameter& parameter : parameters)
        text.roles.push_back(is_pointer(parameter) ? BatchRole::parameter : BatchRole::row);
    return text;
}

}  // namespace

std::optional<std::string> batch_key(const KernelCall& call) {
    const std::optional<KernelDefinition> kernel = batchable(call, false);
    if (!kernel || !has_two_sides(call, kernel->parameters)) return std::nullopt;
    return batch_text_key(call);
}

CallBatch::CallBatch(ContextImpl& context, std::span<const BatchedCall> calls) {
    const KernelCall& first = *calls[0].call;
    const KernelDefinition definition =
        kernel_definition(tokens_of(first.source().source), first.kernel()).value();
    const std::vector<KernelParameter>& parameters = definition.parameters;
    program_ = context.build(text_of(parameters).source(first, definition));
    kernel_ = program_->kernel(first.kernel());
    for (const KernelParameter& parameter : parameters)
        if (is_pointer(parameter))
            sides_[side_of(parameter)].index = kernel_->index_of(parameter.name);
    range_.local = {first.range().local[0], 1, 1};
    range_.global[0] = 0;
    for (const auto& [call, operand] : calls) add_row(*call, operand, parameters);

    table_ = context.allocate(words_.size() * sizeof(words_[0]));
    const auto rows = static_cast<std::int32_t>(calls.size());
    kernel_->set(kernel_->index_of("batch_table"), *table_);
    kernel_->set(kernel_->index_of("batch_rows"), &rows, sizeof(rows));
}

void CallBatch::add_row(const KernelCall& call, int first_operand,
                        const std::vector<KernelParameter>& parameters) {
    words_.push_back(static_cast<std::int32_t>(range_.global[0] / range_.local[0]));
    range_.global[0] += call.range().global[0];
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (is_pointer(parameters[i])) continue;
        for (const KernelCall::Binding& binding : call.bindings())
            if (binding.offset_index == static_cast<int>(i))
                patches_.push_back({words_.size(), first_operand + binding.operand, binding.operand,
                                    binding.extra_bytes, binding.element_bytes, 0});
        const std::uint64_t bits = call.scalar_bits(static_cast<int>(i));
        words_.push_back(static_cast<std::int32_t>(bits & 0xffffffff));
        if (argument_words(parameters[i].type) == 2)
            words_.push_back(static_cast<std::int32_t>(bits >> 32));
    }
}

void CallBatch::enqueue(Queue& queue, std::span<const BufferRef> operands) {
    const Buffer* buffers[2] = {};
    for (Patch& patch : patches_) {
        const BufferRef& ref = operands[static_cast<std::size_t>(patch.operand)];
        const Buffer*& buffer = buffers[patch.side];
        if (buffer == nullptr) buffer = ref.buffer;
        require(buffer != nullptr && ref.buffer == buffer, "kernel '", kernel_->name(),
                "': operand ", patch.operand, " of a batch is not bound, or not in one buffer ",
                "with the others");
        const std::uint64_t offset =
            (ref.handle_offset() + patch.extra_bytes) / patch.element_bytes;
        if (offset == patch.bound_offset) continue;
        patch.bound_offset = offset;
        words_[patch.word] = static_cast<std::int32_t>(offset & 0xffffffff);
        words_[patch.word + 1] = static_cast<std::int32_t>(offset >> 32);
        written_ = false;
    }
    for (int side : {reads, writes}) {
        if (sides_[side].bound_id == buffers[side]->id()) continue;
        kernel_->set(sides_[side].index, *buffers[side]);
        sides_[side].bound_id = buffers[side]->id();
    }
    if (!written_)
        queue.write({table_.get(), 0}, words_.data(), words_.size() * sizeof(words_[0]), true);
    written_ = true;
    queue.launch(*kernel_, range_);
}

}  // namespace dlprim
