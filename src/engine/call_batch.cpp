// SPDX-License-Identifier: MIT
// CallBatch: the text of the batch's kernel, its table, and the launch.
#include "engine/call_batch.hpp"

#include "base/text.hpp"
#include "engine/kernel_function.hpp"
#include "runtime/kernel_parameters.hpp"

#include <algorithm>

namespace dlprim {

namespace {

constexpr const char* row_source = "engine/call_batch.clh";

/// Which of the calls' two tensors a parameter belongs to.
enum SideOf : int { reads, writes };

bool is_pointer(const KernelParameter& parameter) {
    return parameter.type.find('*') != std::string::npos;
}

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

bool has_one_dimension(const NDRange& range) {
    for (std::size_t d = 1; d < static_cast<std::size_t>(range.dims); ++d)
        if (range.global[d] != 1) return false;
    return range.local[0] > 0 && range.global[0] > 0 && range.global[0] % range.local[0] == 0;
}

/// The head of the batch's kernel and the declarations that take the place of its parameters.
std::string batch_head(const std::vector<KernelParameter>& parameters) {
    std::string head, body;
    std::size_t at = 1;
    for (const auto& [type, name] : parameters) {
        if (type.find('*') != std::string::npos) {
            head += cat(type, ' ', name, ", ");
            continue;
        }
        const std::string word = cat("batch_arguments[", at, ']');
        body += argument_words(type) == 1
                    ? cat("    ", type, ' ', name, " = as_", type, '(', word, ");\n")
                    : cat("    ", type, ' ', name, " = as_", type, "((int2)(", word,
                          ", batch_arguments[", at + 1, "]));\n");
        at += argument_words(type);
    }
    return cat(head,
               "global const int* batch_table, int batch_rows) {\n"
               "    global const int* batch_arguments =\n"
               "        batch_row(batch_table, batch_rows, (int)get_group_id(0));\n"
               "    const size_t batch_group = get_group_id(0) - (size_t)batch_arguments[0];\n",
               body,
               "#define get_group_id(d) ((d) == 0 ? batch_group : (size_t)0)\n"
               "#define get_global_id(d) "
               "((d) == 0 ? batch_group * get_local_size(0) + get_local_id(0) : (size_t)0)\n");
}

/// Ints of a row of the table: the first work-group, then the arguments that are no pointers.
std::size_t row_words(const std::vector<KernelParameter>& parameters) {
    std::size_t words = 1;
    for (const KernelParameter& parameter : parameters)
        if (!is_pointer(parameter)) words += argument_words(parameter.type);
    return words;
}

ProgramSource batch_source(const KernelCall& call, const KernelDefinition& kernel) {
    const ProgramSource& source = call.source();
    const std::string& text = source.source;
    return {source.name,
            cat("#define BATCH_ROW ", row_words(kernel.parameters), '\n', kernel_source(row_source),
                text.substr(0, kernel.open), batch_head(kernel.parameters),
                text.substr(kernel.body, kernel.rest - kernel.body),
                "\n#undef get_group_id\n#undef get_global_id\n", text.substr(kernel.rest)),
            source.options};
}

/// The tokens from position `begin` to `end` of the text.
std::span<const SourceToken> between(const std::vector<SourceToken>& tokens, std::size_t begin,
                                     std::size_t end) {
    const auto first = [&](std::size_t at) {
        return std::partition_point(tokens.begin(), tokens.end(),
                                    [&](const SourceToken& token) { return token.at < at; });
    };
    return {first(begin), first(end)};
}

/// Whether the kernel asks for the size of its whole range, or what stands in front of it for the
/// ids of a work-group or a work-item, which only the kernel itself gets by its call.
bool depends_on_range(const std::vector<SourceToken>& tokens, const KernelDefinition& kernel,
                      const std::string& options) {
    static const std::vector<std::string_view> sizes{"get_global_size", "get_num_groups",
                                                     "get_global_offset"};
    static const std::vector<std::string_view> all{
        "get_group_id", "get_global_id", "get_global_size", "get_num_groups", "get_global_offset"};
    const auto before = between(tokens, 0, kernel.open);
    return mentions(before, all) || macros_mention(before, all) ||
           mentions(between(tokens, kernel.body, kernel.rest), sizes) ||
           std::any_of(all.begin(), all.end(), [&](std::string_view word) {
               return options.find(word) != std::string::npos;
           });
}

}  // namespace

std::optional<std::string> batch_key(const KernelCall& call) {
    const auto& [name, text, options] = call.source();
    if (!has_one_dimension(call.range())) return std::nullopt;
    const std::vector<SourceToken> tokens = tokens_of(text);
    const std::optional<KernelDefinition> kernel = kernel_definition(tokens, call.kernel());
    if (!kernel || !has_two_sides(call, kernel->parameters) ||
        depends_on_range(tokens, *kernel, options))
        return std::nullopt;
    return cat(call.kernel(), '\n', call.range().local[0], '\n', options, '\n', text);
}

CallBatch::CallBatch(ContextImpl& context, std::span<const BatchedCall> calls) {
    const KernelCall& first = *calls[0].call;
    const KernelDefinition definition =
        kernel_definition(tokens_of(first.source().source), first.kernel()).value();
    const std::vector<KernelParameter>& parameters = definition.parameters;
    program_ = context.build(batch_source(first, definition));
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
