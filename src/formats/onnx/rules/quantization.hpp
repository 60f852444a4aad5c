// SPDX-License-Identifier: MIT
// Numbers as integers with a scale and a zero point: x = (q - zero_point) * scale.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// A quantised tensor, one number each for scale and zero point.
struct Quantized {
    Ref value, scale, zero;
};

/// The input `i` with the scale and the zero point in the two behind it. A zero point that the node
/// leaves out is 0.
Quantized quantized_input(Call& call, int i);
/// An input of one element as a tensor of rank 0. Throws Error(format) for more.
Ref single_number(Call& call, int i);
/// The same of a zero point, which has the type of what it stands for, and is 0 where it is left
/// out.
Ref zero_point(Call& call, int i, DType dtype);

/// The numbers in float.
Ref dequantized(Builder& build, const Quantized& x);
/// Numbers in the scale and about the zero point of one element each, in the zero point's type.
Ref requantized(Call& call, Ref numbers, Ref scale, Ref zero);

/// Numbers as uint8 by their own range, which takes in 0.
Quantized dynamically_quantized(Builder& build, Ref x);

/// A scale or zero point as it broadcasts to x: one number, one for each place of `axis`, or one
/// for `block` places of it. Throws Error(format) where it is none of these.
Ref laid_over(Call& call, Ref value, const Shape& x, int axis, std::int64_t block);

/// The smallest and largest value of an integer type of 2, 4, 8 or 16 bits. Throws
/// Error(unsupported) for another one.
std::pair<double, double> quantized_range(const Call& call, DType dtype);

}  // namespace dlprim::onnx
