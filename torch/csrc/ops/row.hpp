// SPDX-License-Identifier: MIT
// Rows of rows.yaml: operators of PyTorch that are one generated kernel of dlprim.
//
// generate.py makes the table from rows.yaml when the package is built. Each overload of a row gets
// a boxed kernel: it finds out from the operator's schema what its arguments are, so that one row
// serves the functional, the in-place and the out= overload.
#pragma once

#include "common.hpp"

#include <optional>
#include <span>

namespace dlprim_torch {

/// How the type of the result follows from those of the operands.
enum class Types : std::uint8_t {
    promote,   ///< PyTorch's promotion of the tensors and numbers
    floating,  ///< the same, and integers become the default float type
    quotient,  ///< as floating where the argument rounding_mode is None, else as promote
    real,      ///< the same, and integers are refused
    whole,     ///< the same, and floats are refused
    boolean,   ///< operands are promoted, and the result is bool
    same,      ///< operands are not promoted; the result has the type of the first
    sum,       ///< of reductions: the argument dtype, else int64 for integers and bool
};

enum class Kind : std::uint8_t {
    elementwise,
    reduction,  ///< over the argument "dim", written [dim]
    loss,       ///< elementwise, or a reduction to one value, as the argument "reduction" says
};

/// A part of an expression: text, and behind it the argument of that name; nullptr: none.
struct Piece {
    const char* text;
    const char* argument;
};

/// What an argument must be for a variant of an expression to apply.
struct Condition {
    /// An argument's name, or "common": the type in which operands meet.
    const char* argument;
    /// "none", "some", "tensor" (no number, and none that is a tensor of the CPU), the value of a
    /// text or a number, "true" and "false"; for "common" also "bool", "integral" (without bool),
    /// "floating", "half" (float16 and bfloat16) and "double".
    const char* value;
};

struct Variant {
    std::span<const Condition> conditions;
    std::span<const Piece> pieces;
    /// What is made of the argument "result" then, which a reduction holds in float, and a row
    /// without one rounded to the type in which operands meet. Empty: nothing.
    std::span<const Piece> after;
};

/// What stands for an argument that is None: a number, "[largest]" or "[lowest]".
struct Default {
    const char* argument;
    const char* value;
};

struct Row {
    std::span<const char* const> overloads;  ///< "add.Tensor", "add_.Tensor", "add.out"
    Types types;
    Kind kind;
    /// Of reductions: the result where there are no elements; nothing: an error.
    std::optional<double> empty;
    std::span<const Variant> variants;  ///< the first whose conditions hold counts
    /// The arguments, tensors and numbers, whose types meet. Empty: all tensors.
    std::span<const char* const> meet;
    std::span<const Default> defaults;
};

/// The rows that this package was built with.
std::span<const Row> all_rows();

/// The kernel of one overload.
torch::CppFunction elementwise_kernel(const Row& row);
torch::CppFunction reduction_kernel(const Row& row);
torch::CppFunction loss_kernel(const Row& row);

}  // namespace dlprim_torch
