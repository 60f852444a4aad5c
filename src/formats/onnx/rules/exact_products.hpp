// SPDX-License-Identifier: MIT
// Exact products of small integers by float products. Factors are integers of at most 255 in
// magnitude, as differences of two bytes are. A float holds every sum up to 2^24, so the summed
// dimension is cut where sums could become larger, and the parts' results are added as integers.
#pragma once

#include "formats/onnx/call.hpp"
#include "formats/onnx/rules/quantization.hpp"
#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

/// A factor: integers as floats, and their magnitudes where they are known, else none.
struct Factor {
    Ref value;
    Ints known;
    Ints cuts = {};  ///< of a second factor of matrices: where K is cut, once that is settled
};

/// x - zero_point, where the zero point (null: none) may be one number or fit x by broadcasting.
/// Throws Error(format) for types other than bytes.
Factor shifted(Call& call, Ref x, Ref zero_point);
/// The same of bytes.
Factor shifted(Builder& build, Ref x, Ref zero_point);

/// A second factor [..., k, n] of several products, for which the magnitudes are looked at once.
Factor settled(Factor factor);

/// The product of a [..., m, k] and b [..., k, n] as int32, or as float, rounded once. Throws
/// Error(format) if they do not fit.
Ref exact_matmul(Call& call, const Factor& a, const Factor& b, DType dtype);
/// Sums of products as float numbers in the scales of both factors, perhaps plus a bias.
Ref scaled(Builder& build, Ref sums, Ref left_scale, Ref right_scale, Ref bias);
/// That of the product of a and b, which fit.
Ref scaled_matmul(Builder& build, const Quantized& a, const Factor& b, Ref b_scale, Ref bias);

/// The int32 convolution of images [n, c, h, w] with weights [out, c / groups, kh, kw].
Ref exact_convolution(Call& call, const Factor& images, const Factor& weights,
                      const Windows& windows, std::int64_t groups);

}  // namespace dlprim::onnx
