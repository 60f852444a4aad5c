// SPDX-License-Identifier: MIT
// merge_patterns(): what exporters write in pieces becomes the operator that it is, which engines
// compute together with a convolution or product before it.
#pragma once

#include "formats/onnx/builder.hpp"

#include <set>
#include <vector>

namespace dlprim::onnx {

/// Rewrites operators in place; those that nobody needs any more stay, without readers. Values in
/// `outputs` keep their meaning, as does every value that has another reader. Recognised are, with
/// x any value:
///   x * sigmoid(x)                        silu
///   x * hardsigmoid(x)                    hardswish
///   x * relu6(x + 3) / 6                  hardswish
///   relu6(x + 3) / 6                      hardsigmoid
///   x * (erf(x / sqrt(2)) + 1) * 0.5      gelu, its factors in any order
///   InnerProduct without bias, perhaps reshaped, + a constant of one number a column
///                                         InnerProduct with bias
void merge_patterns(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs);

}  // namespace dlprim::onnx
