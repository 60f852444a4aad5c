// SPDX-License-Identifier: MIT
// NormedProduct: a product of few rows that computes the RMSNorm before it, and the gate behind it,
// in one launch. Only the pass join_norms makes it, where an engine is faster so.
//
//   inputs   x [rows, features], weight (blocks of [columns, features]), bias [columns] if there is
//            one, scale [features], and with a gate `other`, blocks of [columns, features]
//   output   [rows, columns], of n = x * scale / sqrt(mean of the row's x^2 + eps):
//            n weight^T + bias, or with a gate  activation(n weight^T) * (n other^T)
//
// An epilogue's operand follows. A gate has neither bias nor epilogue.
#pragma once

#include "engine/problem.hpp"
#include "graph/operator.hpp"

#include <memory>
#include <string_view>

namespace dlprim::matmul {

inline constexpr std::string_view normed_type = "NormedProduct";
/// ReachedBy::reached_by() of its engines.
inline constexpr std::string_view reached_by_norms = "the pass that joins norms with products";

/// What a NormedProduct has beside the product. Of an InnerProduct `scale` is -1.
struct Normed {
    int scale = -1;  ///< operand number
    int other = -1;  ///< operand number; -1: there is no gate
    double eps = 0;
    Epilogue gate;  ///< the gate's activation

    explicit Normed(const Problem& problem);
    explicit operator bool() const { return scale >= 0; }
};

/// Makes the rows of the norm from those of x.
void normalize_row(const float* x, const float* scale, std::int64_t features, double eps, float* y);

std::unique_ptr<Operator> make_normed();

}  // namespace dlprim::matmul
