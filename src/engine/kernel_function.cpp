// SPDX-License-Identifier: MIT
// kernel_as_function.
#include "engine/kernel_function.hpp"

#include "base/text.hpp"
#include "engine/launch.hpp"
#include "runtime/kernel_parameters.hpp"

#include <algorithm>
#include <set>

namespace dlprim {

namespace {

bool word_char(char c) {
    return ascii::is_word(c);
}

// Converts "-DV=8 -DFLAG" to #define lines and collects the names. Returns false if there is any
// other option. flush_subnormals is dropped, because it affects a whole program and other parts of
// it may need subnormals.
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

// Collects the macros that the text defines.
void add_macros(const std::string& text, std::set<std::string>& names) {
    for (std::size_t at = text.find("define"); at != std::string::npos;
         at = text.find("define", at + 1)) {
        std::size_t hash = at;
        while (hash > 0 && (text[hash - 1] == ' ' || text[hash - 1] == '\t')) --hash;
        if (hash == 0 || text[hash - 1] != '#') continue;
        std::size_t begin = at + 6;
        while (begin < text.size() && text[begin] == ' ') ++begin;
        std::size_t end = begin;
        while (end < text.size() && word_char(text[end])) ++end;
        names.insert(text.substr(begin, end - begin));
    }
}

std::size_t past_space(const std::string& text, std::size_t at) {
    while (at < text.size() && ascii::is_space(text[at])) ++at;
    return at;
}

// Replaces every `kernel __attribute__((reqd_work_group_size(1, 1, 1))) void NAME(` by `static void
// NAME(int, int, int, int, int, int, `. Those that nobody calls are dropped by the compiler.
std::string kernels_to_functions(const std::string& text) {
    std::string result;
    std::size_t done = 0;
    for (std::size_t at = text.find("kernel"); at != std::string::npos;
         at = text.find("kernel", at + 1)) {
        std::size_t end = at + 6;
        if ((at > 0 && word_char(text[at - 1])) || (end < text.size() && word_char(text[end])))
            continue;
        end = past_space(text, end);
        const std::string attribute = "__attribute__((reqd_work_group_size(";
        if (text.compare(end, attribute.size(), attribute) == 0)
            end = past_space(text, text.find(")))", end) + 3);
        if (text.compare(end, 5, "void ") != 0) continue;
        const std::size_t open = text.find('(', end);
        if (open == std::string::npos) break;
        result += text.substr(done, at - done);
        result += "static __attribute__((noinline)) ";
        result += text.substr(end, open + 1 - end);
        result +=
            "const int chain_i, const int chain_j, const int chain_k, const int chain_width, "
            "const int chain_height, const int chain_depth, ";
        done = open + 1;
    }
    return result + text.substr(done);
}

}  // namespace

std::size_t argument_words(const std::string& type) {
    if (type.find("constant") != std::string::npos) return 0;
    if (type.find('*') != std::string::npos) return type.find("global") != std::string::npos;
    if (type == "int" || type == "uint" || type == "float") return 1;
    return type == "long" || type == "ulong" ? 2 : 0;
}

std::optional<std::string> kernel_as_function(const ProgramSource& source, int number) {
    if (mentions(source.source,
                 {"async_work_group_copy", "async_work_group_strided_copy", "wait_group_events"}))
        return std::nullopt;
    std::string head;
    std::set<std::string> macros;
    if (!defines_of(source.options, head, macros)) return std::nullopt;
    add_macros(source.source, macros);
    for (const std::string& name : declared_names(source.source)) {
        if (!macros.insert(name).second) continue;
        head += cat("#define ", name, ' ', name, '_', number, '\n');
    }
    std::string text = head + kernels_to_functions(source.source) + '\n';
    for (const std::string& name : macros) text += cat("#undef ", name, '\n');
    if (text.find("FP_CONTRACT") != std::string::npos)
        text += "#pragma OPENCL FP_CONTRACT DEFAULT\n";
    return text;
}

std::string functions_text(const std::string& functions) {
    return cat(
        "#define get_global_id(d) ((size_t)((d) == 0 ? chain_i : (d) == 1 ? chain_j : chain_k))\n"
        "#define get_global_size(d) "
        "((size_t)((d) == 0 ? chain_width : (d) == 1 ? chain_height : chain_depth))\n"
        "#define get_group_id(d) get_global_id(d)\n"
        "#define get_num_groups(d) get_global_size(d)\n"
        "#define get_local_id(d) ((size_t)0)\n"
        "#define get_local_size(d) ((size_t)1)\n"
        "#define barrier(flags)\n"
        "#define local\n"
        "#define __local\n",
        functions,
        "#undef get_global_id\n#undef get_global_size\n#undef get_group_id\n#undef "
        "get_num_groups\n#undef get_local_id\n#undef get_local_size\n#undef barrier\n#undef "
        "local\n#undef __local\n");
}

bool are_functions(std::span<const KernelCall> calls) {
    for (const KernelCall& call : calls) {
        if (call.may_refuse()) return false;  // its notes are no operand
        const NDRange& range = call.range();
        for (int d = 0; d < range.dims; ++d)
            if (range.local[static_cast<std::size_t>(d)] != 1) return false;
        if (!kernel_as_function(call.source(), 0)) return false;
        for (const KernelParameter& parameter :
             kernel_signature(call.source().source, call.kernel()))
            if (argument_words(parameter.type) == 0) return false;
    }
    return !calls.empty();
}

}  // namespace dlprim
