// SPDX-License-Identifier: MIT
// Parses OpenCL source text: the parameters of kernels, and other names that a text declares.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// What a compiler reads of the text: its tokens, strings included, without comments and layout.
/// Texts with the same result are the same program.
std::string code_of(std::string_view source);

/// A parameter of a kernel, or a member of one that is a struct. Members stand in its place, and
/// their names are set like those of parameters.
struct KernelParameter {
    std::string type;  ///< words of the type, separated by spaces: "global const float *"
    std::string name;
    int argument = 0;        ///< the position in the kernel's signature
    std::string in;          ///< the struct parameter that it is a member of: "Images images"
    std::size_t offset = 0;  ///< in that struct, in bytes
    std::size_t bytes = 0;   ///< of an int, uint, float, long or ulong, else 0
};

/// The parameters of every `kernel void NAME(...)` in the text, by the kernel's name. Comments and
/// preprocessor lines are skipped. Attributes may appear before or after `void`, and in parameters.
/// A struct whose members are to be parameters is declared as `typedef struct { int a, b; } NAME;`
/// with scalar members and without preprocessor conditions.
using KernelSignatures = std::map<std::string, std::vector<KernelParameter>, std::less<>>;
KernelSignatures kernel_signatures(std::string_view source);
/// The kernel called `name`. Throws Error(not_found), which names those of `program`.
KernelSignatures::const_iterator kernel_named(const KernelSignatures& kernels,
                                              std::string_view name, const std::string& program);
/// The names of parameters, for messages: "x, x_offset, count".
std::string names_of(const std::vector<KernelParameter>& parameters);
/// The index of the parameter called `name` of `kernel`. Throws Error(invalid_argument).
int parameter_index(const std::vector<KernelParameter>& parameters, const std::string& kernel,
                    std::string_view name);
/// Those of one kernel; empty if there is no such kernel.
std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel);
/// The bytes of the struct that parameter `index` is a member of, or 0 if it is of none.
std::size_t struct_bytes(const std::vector<KernelParameter>& parameters, std::size_t index);

/// Positions in a text: `kernel void NAME(` parameters `) {` body `}`.
struct KernelDefinition {
    std::size_t open = 0;  ///< after the opening parenthesis
    std::size_t body = 0;  ///< after the opening brace
    std::size_t rest = 0;  ///< after the closing brace
};
/// The first definition of the kernel; nothing if there is none, or if its body does not end.
std::optional<KernelDefinition> kernel_definition(std::string_view source, std::string_view kernel);

/// Names that a text declares outside functions: functions, kernels, types, constants.
std::vector<std::string> declared_names(std::string_view source);
/// Names of the macros that a text defines.
std::vector<std::string> defined_macros(std::string_view source);

/// Whether one of `words` occurs in the text outside comments and preprocessor lines.
bool mentions(std::string_view source, const std::vector<std::string_view>& words);
/// The same, but not in the bodies of kernels. True if the body of a kernel does not end.
bool mentions_outside_kernels(std::string_view source, const std::vector<std::string_view>& words);

}  // namespace dlprim
