// SPDX-License-Identifier: MIT
// What a row makes of a call, without computing it: for graphs of operators, which become networks.
#pragma once

#include "ops/arguments.hpp"

#include <optional>

namespace dlprim_torch {

/// The Pointwise operators of a call.
struct RowProgram {
    Program first;
    bool keep_dim = false;  ///< of a reduction
    /// The second expression, of the first one's result among its inputs.
    std::optional<Program> second;
    at::Tensor result;  ///< stands for that result: on "meta", of its type and of no size
};

/// A row, and the overload of it that a call is for.
struct RowMatch {
    const Row* row;
    c10::OperatorHandle op;
};

/// The row that serves an overload, or one of the same arguments: with out=, or of a tensor in place
/// of a number.
std::optional<RowMatch> row_of(const c10::OperatorHandle& op);

/// Throws as the call would. Tensors may be on "meta": types and ranks count alone, and the sizes
/// for what is written as [numel], the elements of the result.
RowProgram row_program(const RowMatch& match, torch::jit::Stack& stack, std::int64_t numel);

}  // namespace dlprim_torch
