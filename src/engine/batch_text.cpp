// SPDX-License-Identifier: MIT
// BatchText: the head of a batch's kernel, and which kernels it fits.
#include "engine/batch_text.hpp"

#include "base/text.hpp"
#include "engine/kernel_function.hpp"

#include <algorithm>
#include <span>

namespace dlprim {

namespace {

constexpr const char* row_source = "engine/call_batch.clh";

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
                      const std::string& options, bool with_sizes) {
    static const std::vector<std::string_view> without{"get_global_size", "get_num_groups",
                                                       "get_global_offset"},
        offset{"get_global_offset"};
    const auto& sizes = with_sizes ? offset : without;
    static const std::vector<std::string_view> all{
        "get_group_id", "get_global_id", "get_global_size", "get_num_groups", "get_global_offset"};
    const auto before = between(tokens, 0, kernel.open);
    return mentions(before, all) || macros_mention(before, all) ||
           mentions(between(tokens, kernel.body, kernel.rest), sizes) ||
           std::any_of(all.begin(), all.end(), [&](std::string_view word) {
               return options.find(word) != std::string::npos;
           });
}

bool has_one_dimension(const NDRange& range) {
    for (std::size_t d = 1; d < static_cast<std::size_t>(range.dims); ++d)
        if (range.global[d] != 1) return false;
    return range.local[0] > 0 && range.global[0] > 0 && range.global[0] % range.local[0] == 0;
}

}  // namespace

bool is_pointer(const KernelParameter& parameter) {
    return parameter.type.find('*') != std::string::npos;
}

std::optional<KernelDefinition> batchable(const KernelCall& call, bool sizes) {
    const auto& [name, text, options] = call.source();
    if (!has_one_dimension(call.range()) || call.may_refuse()) return std::nullopt;
    const std::vector<SourceToken> tokens = tokens_of(text);
    std::optional<KernelDefinition> kernel = kernel_definition(tokens, call.kernel());
    if (!kernel || depends_on_range(tokens, *kernel, options, sizes)) return std::nullopt;
    return kernel;
}

std::string batch_text_key(const KernelCall& call) {
    const auto& [name, text, options] = call.source();
    return cat(call.kernel(), '\n', call.range().local[0], '\n', options, '\n', text);
}

std::size_t BatchText::words(std::size_t parameter) const {
    switch (roles[parameter]) {
        case BatchRole::parameter:
            return 0;
        case BatchRole::memory:
            return 1;
        case BatchRole::row:
            break;
    }
    return argument_words(parameters[parameter].type);
}

std::size_t BatchText::row_words() const {
    std::size_t all = head_words();
    for (std::size_t i = 0; i < parameters.size(); ++i) all += words(i);
    return all;
}

/// A function that returns one of the memories. Not an array of them: GPUs would write it to each
/// work-item's stack, which takes more bandwidth than the kernel itself.
std::string BatchText::choice_of_memory() const {
    std::string pointers, cases;
    for (int i = 0; i < memories; ++i) {
        pointers += cat(", global uchar* memory_", i);
        if (i > 0) cases += cat("        case ", i, ": return memory_", i, ";\n");
    }
    if (memories == 0) return {};
    return cat("global uchar* batch_memory(int number", pointers, ") {\n    switch (number) {\n",
               cases, "    }\n    return memory_0;\n}\n");
}

/// The kernel's parameters and the declarations that take the place of its own.
std::string BatchText::head() const {
    std::string head, body, all;
    for (int i = 0; i < memories; ++i) {
        head += cat("global uchar* batch_memory_", i, ", ");
        all += cat(", batch_memory_", i);
    }
    std::size_t at = head_words();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto& [type, name] = parameters[i];
        if (roles[i] == BatchRole::parameter) head += cat(type, ' ', name, ", ");
        const std::string word = cat("batch_arguments[", at, ']');
        if (roles[i] == BatchRole::memory)
            body += cat("    ", type, ' ', name, " = (", type, ")batch_memory(", word, all, ");\n");
        if (roles[i] == BatchRole::row)
            body += words(i) == 1 ? cat("    ", type, ' ', name, " = as_", type, '(', word, ");\n")
                                  : cat("    ", type, ' ', name, " = as_", type, "((int2)(", word,
                                        ", batch_arguments[", at + 1, "]));\n");
        at += words(i);
    }
    const char* const size_macros =
        "#define get_num_groups(d) ((d) == 0 ? (size_t)batch_arguments[1] : (size_t)1)\n"
        "#define get_global_size(d) "
        "((d) == 0 ? (size_t)batch_arguments[1] * get_local_size(0) : (size_t)1)\n";
    return cat(head,
               "global const int* batch_table, int batch_rows) {\n"
               "    global const int* batch_arguments =\n"
               "        batch_row(batch_table, batch_rows, (int)get_group_id(0));\n"
               "    const size_t batch_group = get_group_id(0) - (size_t)batch_arguments[0];\n",
               body,
               "#define get_group_id(d) ((d) == 0 ? batch_group : (size_t)0)\n"
               "#define get_global_id(d) "
               "((d) == 0 ? batch_group * get_local_size(0) + get_local_id(0) : (size_t)0)\n",
               sizes ? size_macros : "");
}

ProgramSource BatchText::source(const KernelCall& call, const KernelDefinition& kernel) const {
    const ProgramSource& source = call.source();
    const std::string& text = source.source;
    return {source.name,
            cat("#define BATCH_ROW ", row_words(), '\n', kernel_source(row_source),
                choice_of_memory(), text.substr(0, kernel.open), head(),
                text.substr(kernel.body, kernel.rest - kernel.body),
                "\n#undef get_group_id\n#undef get_global_id\n",
                sizes ? "#undef get_num_groups\n#undef get_global_size\n" : "",
                text.substr(kernel.rest)),
            source.options};
}

}  // namespace dlprim
