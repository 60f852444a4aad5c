// SPDX-License-Identifier: MIT
// Parses OpenCL source text: the parameters of kernels, and other names that a text declares.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// A word, a number or a single character of a text, and where it stands.
struct SourceToken {
    std::string_view text;  ///< refers to the source
    std::size_t at = 0;
    bool macro = false;      ///< in a line of the preprocessor
    bool directive = false;  ///< the # that begins such a line
};

/// The tokens of the text in their order, without comments and strings.
std::vector<SourceToken> tokens_of(std::string_view source);

/// What a compiler reads of the text: its tokens, strings included, without comments and layout.
/// Texts with the same result are the same program.
std::string code_of(std::string_view source);

/// The parameters of every `kernel void NAME(...)` in the text, by the kernel's name. Comments and
/// preprocessor lines are skipped. Attributes may appear before or after `void`, and in parameters.
std::map<std::string, std::vector<std::string>, std::less<>> kernel_parameters(
    std::string_view source);

struct KernelParameter {
    std::string type;  ///< words of the type, separated by spaces: "global const float *"
    std::string name;
};

/// A kernel and its place in the source: "kernel void NAME(" parameters ") {" body "}".
struct KernelDefinition {
    std::vector<KernelParameter> parameters;
    std::size_t open = 0;  ///< the position after the opening parenthesis
    std::size_t body = 0;  ///< the position after the opening brace
    std::size_t rest = 0;  ///< the position after the closing brace
};

/// The first definition of the kernel; nothing if there is none, or if its body does not end.
std::optional<KernelDefinition> kernel_definition(std::span<const SourceToken> tokens,
                                                  std::string_view kernel);

/// The parameters of `kernel void NAME(...)` in order; empty if there is no such kernel.
std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel);

/// Names that a text declares outside functions: functions, kernels, types, constants.
std::vector<std::string> declared_names(std::string_view source);

/// Whether one of `words` occurs in the text outside comments and preprocessor lines.
bool mentions(std::string_view source, const std::vector<std::string_view>& words);
bool mentions(std::span<const SourceToken> tokens, const std::vector<std::string_view>& words);
/// Whether one of `words` occurs in a line of the preprocessor.
bool macros_mention(std::span<const SourceToken> tokens,
                    const std::vector<std::string_view>& words);

}  // namespace dlprim
