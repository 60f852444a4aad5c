// SPDX-License-Identifier: MIT
// KernelFunction: the struct of arguments, and the macros around a kernel's text.
#include "engine/kernel_function.hpp"

#include "base/text.hpp"
#include "engine/launch.hpp"
#include "runtime/program_memo.hpp"
#include "runtime/split_launch.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace dlprim {

namespace {

constexpr const char* group_macros =
    R"(#define TABLE_GROUP const int calls_i, const int calls_j, const int calls_k, \
    const int calls_width, const int calls_height, const int calls_depth
#define get_group_id(d) ((size_t)((d) == 0 ? calls_i : (d) == 1 ? calls_j : calls_k))
#define get_num_groups(d) ((size_t)((d) == 0 ? calls_width : (d) == 1 ? calls_height : calls_depth))
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) (get_num_groups(d) * get_local_size(d))
)";
constexpr const char* no_group_macros = R"(
#undef get_group_id
#undef get_num_groups
#undef get_global_id
#undef get_global_size
)";
constexpr const char* item_macros = R"(#define get_local_id(d) ((size_t)0)
#define get_local_size(d) ((size_t)1)
#define barrier(flags)
#define local
#define __local
#define kernel static __attribute__((noinline))
#define __kernel static __attribute__((noinline))
#define reqd_work_group_size(x, y, z) unused
)";
constexpr const char* no_item_macros = R"(#undef get_local_id
#undef get_local_size
#undef barrier
#undef local
#undef __local
#undef kernel
#undef __kernel
#undef reqd_work_group_size
)";

bool is_global_pointer(const std::string& type) {
    return type.find('*') != std::string::npos && type.find("global") != std::string::npos &&
           type.find("constant") == std::string::npos;
}

const char* member_type(const KernelFunction::Parameter& parameter) {
    return parameter.from == KernelFunction::From::memory ? "int" : parameter.type.c_str();
}

/// Converts "-DV=8 -DFLAG" to #define lines and collects the names. Returns false if there is any
/// other option. flush_subnormals is dropped, because it affects a whole program and other parts of
/// it may need subnormals.
bool defines_of(const std::string& options, std::string& lines, std::set<std::string>& names) {
    for (const std::string& option : split(options, ' ')) {
        if (option.empty() || option == flush_subnormals) continue;
        if (option.rfind("-D", 0) != 0) return false;
        const std::size_t equals = option.find('=');
        const std::string name =
            option.substr(2, equals == std::string::npos ? equals : equals - 2);
        names.insert(name);
        lines += cat("#define ", name, ' ',
                     equals == std::string::npos ? "1" : option.substr(equals + 1), '\n');
    }
    return true;
}

std::string undefined(const std::set<std::string>& names) {
    std::string lines = "\n";
    for (const std::string& name : names) lines += cat("#undef ", name, '\n');
    return lines;
}

/// What the functions here know of a program's text.
struct ParsedText {
    explicit ParsedText(const ProgramSource& source);
    /// Prepares for numbered_functions(), for which a text can be without any.
    void find_names();
    /// Macros that put the group in front of the parameters of every kernel, and `suffix` behind
    /// all names of the text.
    std::string head_macros(const std::string& suffix) const;

    bool is_of(const ProgramSource& source) const {
        return source.source == text && source.options == options;
    }

    std::string text, options, hash;
    std::map<std::string, std::vector<KernelParameter>, std::less<>> kernels;
    /// Outside of its kernels, or by a macro of the runtime's, or it has sub-groups of a given
    /// size.
    bool asks_for_ids = false;
    bool can_be_numbered = false;
    std::string defines;             ///< the lines of its options
    std::vector<std::string> names;  ///< what it declares beside kernels and macros
    std::string tail;                ///< the lines that undo all macros
};

ParsedText::ParsedText(const ProgramSource& source)
    : text(source.source),
      options(source.options),
      hash(hash_of(source)),
      kernels(kernel_signatures(text)) {
    asks_for_ids =
        has_group_offsets(text) ||
        mentions_outside_kernels(text, {"get_group_id", "get_global_id", "get_global_size",
                                        "get_num_groups", "intel_reqd_sub_group_size"});
    if (!mentions(text,
                  {"async_work_group_copy", "async_work_group_strided_copy", "wait_group_events"}))
        find_names();
}

void ParsedText::find_names() {
    std::set<std::string> macros;
    can_be_numbered = defines_of(options, defines, macros);
    if (!can_be_numbered) return;
    for (std::string& name : defined_macros(text)) macros.insert(std::move(name));
    for (const auto& [name, parameters] : kernels) macros.insert(name);
    for (std::string& name : declared_names(text))
        if (macros.insert(name).second) names.push_back(std::move(name));
    tail = cat(undefined(macros), text.find("FP_CONTRACT") != std::string::npos
                                      ? "#pragma OPENCL FP_CONTRACT DEFAULT\n"
                                      : "");
}

std::string ParsedText::head_macros(const std::string& suffix) const {
    std::string lines;
    for (const auto& [name, parameters] : kernels) {
        std::string own, all = "TABLE_GROUP";
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            own += cat(i > 0 ? ", p" : "p", i);
            all += cat(", p", i);
        }
        lines += cat("#define ", name, '(', own, ") ", name, suffix, '(', all, ")\n");
    }
    for (const std::string& name : names) lines += cat("#define ", name, ' ', name, suffix, '\n');
    return lines;
}

bool has_struct(const std::vector<KernelFunction::Parameter>& parameters) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [](const KernelFunction::Parameter& p) { return !p.in.empty(); });
}

const ParsedText& parsed(const ProgramSource& source) {
    static ProgramMemo<ParsedText> texts;
    // A program is asked about many times, and to compare its text with the one that was at this
    // address takes a tenth of the time to look it up.
    thread_local std::unordered_map<const ProgramSource*, const ParsedText*> latest;
    constexpr std::size_t most = 4096;
    if (latest.size() > most) latest.clear();
    const ParsedText*& known = latest[&source];
    if (known == nullptr || !known->is_of(source))
        known = &texts.of(source, [&] { return ParsedText(source); });
    return *known;
}

}  // namespace

std::string KernelFunction::struct_text(std::string_view name) const {
    std::string text = cat("struct ", name, " {");
    for (const std::size_t size : {8, 4})
        for (const Parameter& parameter : parameters)
            if (parameter.bytes == size)
                text += cat(' ', member_type(parameter), ' ', parameter.name, ';');
    return text + " };\n";
}

std::string KernelFunction::call_text(std::string_view function, std::string_view group,
                                      std::string_view row) const {
    std::string text = cat(function, '(', group);
    for (const Parameter& parameter : parameters) {
        const std::string member = cat(row, "->", parameter.name);
        if (parameter.from == From::launch)
            text += cat(", ", parameter.name);
        else if (parameter.from == From::row)
            text += cat(", ", member);
        else
            text += cat(", (global void*)calls_memory(", member, ')');
    }
    return text + ')';
}

std::string KernelFunction::variables_text(std::string_view row) const {
    std::string text;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& parameter = parameters[i];
        const std::string member = cat(row, "->", parameter.name);
        if (parameter.from == From::launch) continue;
        if (!parameter.in.empty()) {
            const bool first = parameter.offset == 0;
            const bool last = i + 1 == parameters.size() || parameters[i + 1].in != parameter.in;
            text += cat(first ? cat("    const ", parameter.in, " = {") : ", ", member,
                        last ? "};\n" : "");
            continue;
        }
        const bool memory = parameter.from == From::memory;
        text += cat("    ", parameter.type, ' ', parameter.name, " = ",
                    memory ? cat("(global void*)calls_memory(", member, ')') : member, ";\n");
    }
    return text;
}

std::string kernel_key(const KernelCall& call) {
    return cat(call.kernel(), '\n', parsed(call.source()).hash);
}

std::optional<KernelFunction> kernel_function(const KernelCall& call) {
    const ParsedText& text = parsed(call.source());
    const auto kernel = text.kernels.find(call.kernel());
    if (call.may_refuse() || text.asks_for_ids || kernel == text.kernels.end()) return std::nullopt;
    KernelFunction function;
    for (const KernelParameter& declared : kernel->second) {
        KernelFunction::Parameter parameter{declared};
        if (is_global_pointer(declared.type)) {
            parameter.from = KernelFunction::From::memory;
            parameter.bytes = 4;
        }
        // Names that begin so are those of the texts here.
        if (parameter.bytes == 0 || declared.name.starts_with("calls_")) return std::nullopt;
        function.parameters.push_back(std::move(parameter));
    }
    for (const KernelCall::Argument& argument : call.arguments()) {
        auto& parameter = function.parameters[static_cast<std::size_t>(argument.parameter)];
        parameter.from = KernelFunction::From::launch;
        parameter.bytes = 0;
    }
    // As in struct_text(): those of 8 bytes come first, so that none is padded.
    for (const std::size_t size : {8, 4})
        for (KernelFunction::Parameter& parameter : function.parameters) {
            if (parameter.bytes != size) continue;
            parameter.at = function.bytes;
            function.bytes += size;
        }
    function.bytes = (function.bytes + 7) / 8 * 8;
    return function;
}

std::optional<std::string> kernel_over_rows(const ProgramSource& source, std::string_view kernel,
                                            const std::string& parameters,
                                            const std::string& before) {
    const std::string& text = source.source;
    const std::optional<KernelDefinition> at = kernel_definition(text, kernel);
    if (!at) return std::nullopt;
    return cat(text.substr(0, at->open), parameters, ") {\n", before, group_macros,
               text.substr(at->body, at->rest - at->body), no_group_macros, text.substr(at->rest));
}

std::optional<std::string> numbered_functions(const ProgramSource& source, int number) {
    const ParsedText& text = parsed(source);
    if (!text.can_be_numbered) return std::nullopt;
    return cat(text.defines, text.head_macros(cat('_', number)), source.source, text.tail);
}

std::string single_items(const std::string& functions) {
    return cat(group_macros, item_macros, functions, no_item_macros, no_group_macros);
}

bool are_functions(std::span<const KernelCall> calls) {
    return !calls.empty() && std::all_of(calls.begin(), calls.end(), [](const KernelCall& call) {
        const NDRange& range = call.range();
        for (int d = 0; d < range.dims; ++d)
            if (range.local[static_cast<std::size_t>(d)] != 1) return false;
        const std::optional<KernelFunction> function = kernel_function(call);
        return call.arguments().empty() && function && !has_struct(function->parameters) &&
               parsed(call.source()).can_be_numbered;
    });
}

}  // namespace dlprim
