// SPDX-License-Identifier: MIT
// Exact products of small integers by float products. Factors are integers of at most 255 in
// magnitude, as differences of two bytes are. A float holds every sum up to 2^24, so the summed
// dimension is cut where sums could become larger, and the parts' results are added as integers.
#pragma once

#include "formats/onnx/call.hpp"
#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

/// A factor: integers as floats, and their magnitudes where they are known, else none.
struct Factor {
    Ref value;
    Ints known;
};

/// x - zero_point, where the zero point (null: none) may be one number or fit x by broadcasting.
/// Throws Error(format) for types other than bytes.
Factor shifted(Call& call, Ref x, Ref zero_point);

/// The int32 product of a [..., m, k] and b [..., k, n].
Ref exact_matmul(Call& call, const Factor& a, const Factor& b);

/// The int32 convolution of images [n, c, h, w] with weights [out, c / groups, kh, kw].
Ref exact_convolution(Call& call, const Factor& images, const Factor& weights,
                      const Windows& windows, std::int64_t groups);

}  // namespace dlprim::onnx
