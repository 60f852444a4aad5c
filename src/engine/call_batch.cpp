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

/// Where a kernel's text is divided: "... void NAME(" parameters ") {" body "}" rest.
struct Head {
    std::size_t open = 0;  ///< after the parenthesis
    std::size_t body = 0;  ///< after the brace
    std::size_t rest = 0;  ///< after the closing brace
};

/// The position after the brace that closes the one in front of `at`.
std::size_t past_body(const std::string& text, std::size_t at) {
    for (int depth = 1; at < text.size() && depth > 0; ++at) {
        if (text.compare(at, 2, "//") == 0) at = std::min(text.find('\n', at), text.size() - 1);
        if (text[at] == '{') ++depth;
        if (text[at] == '}') --depth;
    }
    return at;
}

std::optional<Head> head_of(const std::string& text, const std::string& kernel) {
    const auto past_space = [&](std::size_t at) {
        while (at < text.size() && ascii::is_space(text[at])) ++at;
        return at;
    };
    const std::string begin = cat("void ", kernel);
    for (std::size_t at = text.find(begin); at != std::string::npos;
         at = text.find(begin, at + 1)) {
        std::size_t end = past_space(at + begin.size());
        if (end == text.size() || text[end] != '(') continue;
        Head head;
        head.open = end + 1;
        int depth = 0;
        for (; end < text.size(); ++end) {
            if (text[end] == '(') ++depth;
            if (text[end] == ')' && --depth == 0) break;
        }
        end = past_space(end + 1);
        if (end >= text.size() || text[end] != '{') continue;
        head.body = end + 1;
        head.rest = past_body(text, head.body);
        return head;
    }
    return std::nullopt;
}

bool is_pointer(const KernelParameter& parameter) {
    return parameter.type.find('*') != std::string::npos;
}

/// reads or writes for a pointer.
SideOf side_of(const KernelParameter& parameter) {
    return (' ' + parameter.type).find(" const ") != std::string::npos ? reads : writes;
}

/// Whether the calls in a batch cannot depend on each other, and the table can hold the arguments.
bool has_two_sides(const KernelCall& call, const std::vector<KernelParameter>& parameters) {
    if (call.bindings().size() != 2) return false;
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

/// Whether a line of the preprocessor contains the word. mentions() leaves such lines out.
bool macros_mention(std::string_view text, std::string_view word) {
    bool continued = false;
    for (const std::string& line : split(std::string(text), '\n')) {
        const std::size_t first = line.find_first_not_of(" \t");
        const bool macro = continued || (first != std::string::npos && line[first] == '#');
        if (macro && line.find(word) != std::string::npos) return true;
        continued = macro && !line.empty() && line.back() == '\\';
    }
    return false;
}

ProgramSource batch_source(const KernelCall& call, const std::vector<KernelParameter>& parameters) {
    const ProgramSource& source = call.source();
    const Head head = head_of(source.source, call.kernel()).value();
    return {source.name,
            cat("#define BATCH_ROW ", row_words(parameters), '\n', kernel_source(row_source),
                source.source.substr(0, head.open), batch_head(parameters),
                source.source.substr(head.body, head.rest - head.body),
                "\n#undef get_group_id\n#undef get_global_id\n", source.source.substr(head.rest)),
            source.options};
}

}  // namespace

std::optional<std::string> batch_key(const KernelCall& call) {
    const std::string& text = call.source().source;
    const std::optional<Head> head = head_of(text, call.kernel());
    if (!head || !has_one_dimension(call.range()) ||
        !has_two_sides(call, kernel_signature(text, call.kernel())))
        return std::nullopt;
    // A function in front of the kernel would not get the ids of the call.
    const std::string_view whole = text, before = whole.substr(0, head->open);
    const std::string_view body = whole.substr(head->body, head->rest - head->body);
    const std::vector<std::string_view> sizes{"get_global_size", "get_num_groups",
                                              "get_global_offset"};
    if (mentions(before, {"get_group_id", "get_global_id"}) || mentions(before, sizes) ||
        mentions(body, sizes))
        return std::nullopt;
    // A macro in front of the kernel, or an option, may ask for them in its place.
    for (const std::string_view word : {"get_group_id", "get_global_id", "get_global_size",
                                        "get_num_groups", "get_global_offset"})
        if (macros_mention(before, word) || call.source().options.find(word) != std::string::npos)
            return std::nullopt;
    return cat(call.kernel(), '\n', call.range().local[0], '\n', call.source().options, '\n', text);
}

CallBatch::CallBatch(ContextImpl& context, std::span<const BatchedCall> calls) {
    const KernelCall& first = *calls[0].call;
    const std::vector<KernelParameter> parameters =
        kernel_signature(first.source().source, first.kernel());
    program_ = context.build(batch_source(first, parameters));
    kernel_ = program_->kernel(first.kernel());
    for (const KernelParameter& parameter : parameters)
        if (is_pointer(parameter))
            sides_[side_of(parameter)].index = kernel_->index_of(parameter.name);
    range_.local = {first.range().local[0], 1, 1};
    range_.global[0] = 0;
    for (const auto& [call, operand] : calls) add_row(*call, operand, row_words(parameters));

    table_ = context.allocate(words_.size() * sizeof(words_[0]));
    const auto rows = static_cast<std::int32_t>(calls.size());
    kernel_->set(kernel_->index_of("batch_table"), *table_);
    kernel_->set(kernel_->index_of("batch_rows"), &rows, sizeof(rows));
}

void CallBatch::add_row(const KernelCall& call, int first_operand, std::size_t row_words) {
    const std::size_t begin = words_.size();
    words_.push_back(static_cast<std::int32_t>(range_.global[0] / range_.local[0]));
    range_.global[0] += call.range().global[0];
    const std::vector<KernelParameter> parameters =
        kernel_signature(call.source().source, call.kernel());
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
    require(words_.size() == begin + row_words, "a batch's calls have different parameters");
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
        const std::uint64_t offset = (ref.byte_offset + patch.extra_bytes) / patch.element_bytes;
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
