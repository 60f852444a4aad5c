// SPDX-License-Identifier: MIT
// bodies_apart(): finds the kernels of a text, and writes a function and a kernel for each.
#include "runtime/kernel_bodies.hpp"

#include "base/text.hpp"
#include "runtime/kernel_parameters.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace dlprim {
namespace {

/// A built-in function, and what it is in a body.
struct IdFunction {
    const char *name, *value;
};
constexpr std::array<IdFunction, 6> id_functions = {{
    {"get_group_id", "((d) == 0 ? group_0 : (d) == 1 ? group_1 : group_2)"},
    {"get_num_groups", "((d) == 0 ? groups_0 : (d) == 1 ? groups_1 : groups_2)"},
    {"get_global_id", "((d) == 0 ? id_0 : (d) == 1 ? id_1 : id_2)"},
    {"get_global_size", "get_num_groups(d)"},
    {"get_local_id", "((size_t)0)"},
    {"get_local_size", "((size_t)1)"},
}};
constexpr const char* id_parameters =
    "const size_t id_0, const size_t id_1, const size_t id_2, "
    "const size_t group_0, const size_t group_1, const size_t group_2, "
    "const size_t groups_0, const size_t groups_1, const size_t groups_2";
// A part of a launch (runtime/split_launch.hpp) has ids from an offset on.
constexpr const char* id_arguments =
    "get_global_id(0), get_global_id(1), get_global_id(2), "
    "get_group_id(0), get_group_id(1), get_group_id(2), "
    "get_num_groups(0), get_num_groups(1), get_num_groups(2)";

/// PoCL's functions of ids are macros themselves, which come back behind the body.
std::string macros() {
    std::string lines = "\n";
    for (const auto& [name, value] : id_functions)
        lines += cat("#pragma push_macro(\"", name, "\")\n#undef ", name, "\n#define ", name,
                     "(d) ", value, '\n');
    return lines;
}

std::string no_macros() {
    std::string lines = "\n";
    for (const auto& [name, value] : id_functions)
        lines += cat("#undef ", name, "\n#pragma pop_macro(\"", name, "\")\n");
    return lines;
}

/// The local memory that a kernel declares first, `local TYPE NAME[SIZE];`. PoCL gives threads
/// local memory of their own within kernels alone, so it stays there, and the body gets its
/// address. LLVM must not see that this is a constant, or would put the constant into the body.
struct LocalArrays {
    std::string declarations, parameters, arguments;
    std::size_t end = 0;  ///< of their declarations in the body
};

LocalArrays local_arrays(std::string_view body) {
    LocalArrays found;
    constexpr std::string_view word = "local ";
    for (std::size_t at = 0;;) {
        while (at < body.size() && ascii::is_space(body[at])) ++at;
        const std::size_t end = body.find(';', at);
        if (body.substr(at, word.size()) != word || end == std::string_view::npos) return found;
        const std::string_view all = body.substr(at, end - at);
        const std::size_t open = all.find('['), blank = all.rfind(' ', open);
        if (open == std::string_view::npos || all.find_first_of("[,=", open + 1) != all.npos)
            return found;
        const std::string_view type = all.substr(0, blank),
                               name = all.substr(blank + 1, open - blank - 1);
        found.declarations += cat(all, "; ", type, "* volatile at_", name, " = ", name, "; ");
        found.parameters += cat(type, "* ", name, ", ");
        found.arguments += cat("at_", name, ", ");
        found.end = at = end + 1;
    }
}

/// `kernel void NAME(` parameters `) {` body `}` in a text.
struct WholeKernel {
    std::string name, parameters;
    std::size_t begin;  ///< of the word `kernel`
    KernelDefinition at;
    LocalArrays local;
};

/// The names of a kernel's parameters, of which structs are one each.
std::string parameter_names(const std::vector<KernelParameter>& parameters) {
    std::vector<std::string> names;
    int last = -1;
    for (const KernelParameter& parameter : parameters) {
        if (std::exchange(last, parameter.argument) == parameter.argument) continue;
        const std::string& in = parameter.in;
        names.push_back(in.empty() ? parameter.name : in.substr(in.rfind(' ') + 1));
    }
    return join(names, ", ");
}

/// The kernels whose bodies can be functions, in their order.
std::vector<WholeKernel> separable_kernels(std::string_view source) {
    std::vector<WholeKernel> found;
    for (const auto& [name, parameters] : kernel_signatures(source)) {
        const auto at = kernel_definition(source, name);
        if (!at || parameters.empty()) continue;
        const std::size_t begin = source.rfind("kernel ", at->open);
        if (begin == std::string_view::npos || (begin > 0 && ascii::is_word(source[begin - 1])))
            continue;
        std::string head(source.substr(begin, at->open - begin));
        std::erase_if(head, [](char c) { return ascii::is_space(c); });
        const std::string_view body = source.substr(at->body, at->rest - at->body);
        LocalArrays local = local_arrays(body);
        if (head.find("reqd_work_group_size(1,1,1)") == std::string::npos ||
            mentions(body.substr(local.end), {"local", "__local", "barrier", "wait_group_events"}))
            continue;
        found.push_back({name, parameter_names(parameters), begin, *at, std::move(local)});
    }
    std::sort(found.begin(), found.end(),
              [](const WholeKernel& a, const WholeKernel& b) { return a.begin < b.begin; });
    return found;
}

}  // namespace

std::string bodies_apart(std::string_view source) {
    // In a chain (plan/chain_program.hpp) kernels are functions already.
    if (source.find("#define kernel") != std::string_view::npos) return std::string(source);
    std::string text;
    std::size_t at = 0;
    for (const auto& [name, parameters, begin, kernel, local] : separable_kernels(source)) {
        const auto part = [&](std::size_t from, std::size_t to) {
            return source.substr(from, to - from);
        };
        const std::size_t close = source.rfind(')', kernel.body);
        text += cat(part(at, begin), macros(), "static __attribute__((noinline)) void body_", name,
                    '(', id_parameters, ", ", local.parameters, part(kernel.open, close), ") {",
                    part(kernel.body + local.end, kernel.rest), no_macros(), part(begin, close),
                    ") { ", local.declarations, "body_", name, '(', id_arguments, ", ",
                    local.arguments, parameters, "); }\n");
        at = kernel.rest;
    }
    return text + std::string(source.substr(at));
}

}  // namespace dlprim
