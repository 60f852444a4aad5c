// SPDX-License-Identifier: MIT
// merge_patterns(): recognises operators that exporters write as several nodes, such as GELU or
// LayerNorm, and replaces them by one operator. Engines can then fuse it after a convolution or
// product.
#pragma once

#include "formats/onnx/builder.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// Values that patterns make: scaled weights, tensors in another order. `names` are for those that
/// become parameters.
struct MadeValues {
    std::deque<BuiltValue> values;
    std::map<Ref, std::string> names;
};

/// Rewrites operators in place. Operators that are no longer needed stay in the list, without
/// readers. Values in `outputs`, and every value that has another reader, keep their contents.
/// These patterns are recognised, where x is any value and c a constant:
///   x * sigmoid(x)                        silu
///   x * hardsigmoid(x)                    hardswish
///   x * relu6(x + 3) / 6                  hardswish
///   relu6(x + 3) / 6                      hardsigmoid
///   x * (erf(x / sqrt(2)) + 1) * 0.5      gelu, its factors in any order
///   (x - mean) / sqrt(variance + c)       LayerNorm, perhaps * c + c, or as TensorFlow writes it:
///                                         x * s + (c - mean * s), s = c / sqrt(variance + c)
///   softmax(q k^T * c + mask) v           Attention; c may be shared out among q, k and the
///                                         product, and a guard against NaN may follow the softmax
///   InnerProduct or convolution, * or / c, + or - c, of a number for each column or channel
///                                         the same with another weight and bias, as of a
///                                         BatchNormalization written as Mul and Add
///   convolution of a padded image         the convolution with more padding; likewise pooling, by
///                                         a mean that counts zeros or a maximum of positive values
///   DequantizeLinear of QuantizeLinear    one expression of floats, for the same scale and zero
void merge_patterns(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs,
                    const Builder& builder, MadeValues& made);

}  // namespace dlprim::onnx
