// SPDX-License-Identifier: MIT
// LinearCrossEntropy: the cross entropy of logits x weight^T + bias, which are computed for a chunk
// of rows at a time and never held as a whole.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace dlprim::linear_cross_entropy {

inline constexpr std::string_view rows_type = "LinearCrossEntropyRows";

/// The value of ignore_index if every label counts.
inline constexpr std::int64_t no_label = std::numeric_limits<std::int64_t>::min();

/// Inputs: x [N, features], labels [N], the weight and perhaps the bias. Outputs: each row's loss,
/// which is 0 where the label is ignored, and the logarithm of its sum of exponentials (rows.cpp).
std::unique_ptr<Operator> make_rows();

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::linear_cross_entropy
