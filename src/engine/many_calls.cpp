// SPDX-License-Identifier: MIT
// ManyCalls: rows, tables, and kernels for 4, 16 or 64 memories.
#include "engine/many_calls.hpp"

#include "base/text.hpp"
#include "engine/kernel_function.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dlprim {

namespace {

constexpr double first_mark = 1000003;

/// Whether the generator of Pointwise kernels names a scalar so: "p0", "p0_whole".
bool names_scalar(const std::string& name) {
    return name.size() > 1 && name[0] == 'p' && ascii::is_digit(name[1]);
}

int variant_size(std::size_t memories) {
    return memories <= 4 ? 4 : memories <= 16 ? 16 : ManyCalls::most_memories;
}

void push(std::vector<std::int32_t>& words, std::uint64_t bits, std::size_t count) {
    words.push_back(static_cast<std::int32_t>(bits & 0xffffffff));
    if (count == 2) words.push_back(static_cast<std::int32_t>(bits >> 32));
}

}  // namespace

double scalar_mark(std::size_t number) {
    return first_mark + static_cast<double>(number);
}

std::optional<std::string> ManyCalls::key(const KernelCall& call) {
    const std::optional<KernelDefinition> kernel = batchable(call, true);
    if (!kernel || call.bindings().size() > most_memories) return std::nullopt;
    for (const KernelParameter& parameter : kernel->parameters)
        if (!is_pointer(parameter) && argument_words(parameter.type) == 0) return std::nullopt;
    return batch_text_key(call);
}

ManyCalls::ManyCalls(ContextImpl& context, std::span<const PlacedCall> calls)
    : context_(context),
      call_(*calls[0].call),
      definition_(batchable(call_, true).value()),
      text_{.sizes = true, .parameters = definition_.parameters} {
    for (const KernelParameter& parameter : definition_.parameters)
        text_.roles.push_back(is_pointer(parameter) ? BatchRole::memory : BatchRole::row);
    find_arguments(call_);
    for (const PlacedCall& placed : calls) add_row(placed);
    variant_for(1);
}

void ManyCalls::find_arguments(const KernelCall& call) {
    for (std::size_t i = 0; i < text_.parameters.size(); ++i) {
        const auto& [type, name] = text_.parameters[i];
        if (text_.roles[i] != BatchRole::row || !names_scalar(name)) continue;
        const std::uint64_t bits = call.scalar_bits(static_cast<int>(i));
        const auto whole = static_cast<double>(static_cast<std::int64_t>(bits));
        Argument argument{Argument::Kind::whole, name, 0};
        double mark = whole;
        if (type == "float") {
            argument.kind = Argument::Kind::real;
            mark = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        } else if (whole > 2 * first_mark || whole < 0) {
            argument.kind = Argument::Kind::bits;
            mark = std::bit_cast<double>(bits);
        }
        require(mark >= first_mark && mark < 2 * first_mark, "kernel '", call.kernel(),
                "': parameter ", name, " is none of the program's scalars");
        argument.number = static_cast<std::size_t>(mark - first_mark);
        text_.roles[i] = BatchRole::parameter;
        arguments_.push_back(std::move(argument));
    }
}

void ManyCalls::add_row(const PlacedCall& placed) {
    const KernelCall& call = *placed.call;
    const std::size_t groups = call.range().global[0] / call.range().local[0];
    Row row{{0, static_cast<std::int32_t>(groups)}, {}, static_cast<std::int32_t>(groups)};
    std::vector<std::size_t> words;  // by parameter
    for (std::size_t i = 0; i < text_.parameters.size(); ++i) {
        words.push_back(row.words.size());
        if (const std::size_t count = text_.words(i); count > 0)
            push(row.words, call.scalar_bits(static_cast<int>(i)), count);
    }
    for (const KernelCall::Binding& binding : call.bindings())
        row.patches.push_back({words[static_cast<std::size_t>(binding.buffer_index)],
                               words[static_cast<std::size_t>(binding.offset_index)],
                               placed.first_operand + static_cast<std::size_t>(binding.operand),
                               binding.extra_bytes, binding.element_bytes});
    rows_.push_back(std::move(row));
}

ManyCalls::Variant& ManyCalls::variant_for(std::size_t memories) {
    const auto known =
        std::find_if(variants_.begin(), variants_.end(), [&](const Variant& variant) {
            return static_cast<std::size_t>(variant.memories) >= memories;
        });
    if (known != variants_.end()) return *known;
    Variant made;
    made.memories = text_.memories = variant_size(memories);
    made.program = context_.build(text_.source(call_, definition_));
    made.kernel = made.program->kernel(call_.kernel());
    made.bound.assign(static_cast<std::size_t>(made.memories), 0);
    made.table = made.kernel->index_of("batch_table");
    made.rows = made.kernel->index_of("batch_rows");
    // More memories were not needed before, so that the new variant is the largest.
    return variants_.emplace_back(std::move(made));
}

/// Fills `words` with rows from `first` on, as many as `most_memories` allow. Returns their end.
std::size_t ManyCalls::fill_table(std::size_t first, std::span<const BufferRef> operands,
                                  std::vector<const Buffer*>& memories,
                                  std::vector<std::int32_t>& words) {
    std::int32_t groups = 0;
    std::size_t i = first;
    for (; i < rows_.size(); ++i) {
        const Row& row = rows_[i];
        const std::size_t begin = words.size(), known = memories.size();
        words.insert(words.end(), row.words.begin(), row.words.end());
        words[begin] = groups;
        for (const Patch& patch : row.patches) {
            const BufferRef& ref = operands[patch.operand];
            auto found = std::find_if(memories.begin(), memories.end(), [&](const Buffer* memory) {
                return memory->handle() == ref.buffer->handle();
            });
            if (found == memories.end()) found = memories.insert(found, ref.buffer);
            words[begin + patch.memory_word] = static_cast<std::int32_t>(found - memories.begin());
            const std::uint64_t offset =
                (ref.handle_offset() + patch.extra_bytes) / patch.element_bytes;
            words[begin + patch.offset_word] = static_cast<std::int32_t>(offset & 0xffffffff);
            words[begin + patch.offset_word + 1] = static_cast<std::int32_t>(offset >> 32);
        }
        if (memories.size() > static_cast<std::size_t>(most_memories) && i > first) {
            words.resize(begin);
            memories.resize(known);
            break;
        }
        groups += row.groups;
    }
    return i;
}

void ManyCalls::upload(Table& table, const std::vector<std::int32_t>& words) {
    if (table.words == words) return;
    const std::uint64_t bytes = words.size() * sizeof(words[0]);
    if (!table.memory || table.memory->bytes() < bytes)
        table.memory = context_.allocate(bytes);  // no block: the kernel takes no offset
    Table::Upload& upload = table.uploads[table.next++ % table.uploads.size()];
    if (upload.done) upload.done->wait();
    upload.words = words;
    context_.queue().write({table.memory.get(), 0}, upload.words.data(), bytes, false);
    upload.done = context_.record({});
    table.words = words;
}

void ManyCalls::launch(Variant& variant, const Table& table,
                       const std::vector<const Buffer*>& memories, std::span<const double> scalars,
                       std::size_t groups) {
    Kernel& kernel = *variant.kernel;
    for (std::size_t i = 0; i < variant.bound.size(); ++i) {
        // What is not needed is bound as well: no parameter may be left without a value.
        const Buffer& memory = *memories[i < memories.size() ? i : 0];
        if (variant.bound[i] == memory.id()) continue;
        kernel.set(kernel.index_of(cat("batch_memory_", i)), memory);
        variant.bound[i] = memory.id();
    }
    for (const Argument& argument : arguments_) {
        const double value = scalars[argument.number];
        const int index = kernel.index_of(argument.name);
        if (argument.kind == Argument::Kind::real) {
            const auto real = static_cast<float>(value);
            kernel.set(index, &real, sizeof(real));
        } else {
            const std::int64_t whole = argument.kind == Argument::Kind::bits
                                           ? std::bit_cast<std::int64_t>(value)
                                           : static_cast<std::int64_t>(value);
            kernel.set(index, &whole, sizeof(whole));
        }
    }
    const auto rows = static_cast<std::int32_t>(table.words.size() / text_.row_words());
    kernel.set(variant.table, *table.memory);
    kernel.set(variant.rows, &rows, sizeof(rows));
    NDRange range = call_.range();
    range.global[0] = groups * range.local[0];
    context_.queue().launch(kernel, range);
}

void ManyCalls::enqueue(std::span<const BufferRef> operands, std::span<const double> scalars) {
    std::vector<const Buffer*> memories;
    std::vector<std::int32_t> words;
    std::size_t number = 0;
    for (std::size_t first = 0; first < rows_.size(); ++number) {
        memories.clear();
        words.clear();
        const std::size_t last = fill_table(first, operands, memories, words);
        if (tables_.size() <= number) tables_.resize(number + 1);
        upload(tables_[number], words);
        std::size_t groups = 0;
        for (std::size_t i = first; i < last; ++i)
            groups += static_cast<std::size_t>(rows_[i].groups);
        launch(variant_for(memories.size()), tables_[number], memories, scalars, groups);
        first = last;
    }
}

}  // namespace dlprim
