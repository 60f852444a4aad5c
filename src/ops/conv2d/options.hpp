// SPDX-License-Identifier: MIT
// Options of Convolution2D and of its two gradient operators, and the geometry that engines work
// with.
#pragma once

#include "base/attrs.hpp"
#include "engine/problem.hpp"

#include <dlprim/shape.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace dlprim::conv2d {

/// Options as read from Attrs. Pairs are [height, width].
struct Conv2dOptions {
    std::int64_t channels_out = -1;  ///< -1 where the operator does not say (gradients)
    std::int64_t channels_in = -1;   ///< -1: deduced
    std::int64_t groups = 1;
    bool bias = true;
    std::array<std::int64_t, 2> kernel{1, 1};
    std::array<std::int64_t, 2> stride{1, 1};
    std::array<std::int64_t, 4> pad{0, 0, 0, 0};  ///< top, left, bottom, right
    std::array<std::int64_t, 2> dilate{1, 1};
    std::string activation = "identity";

    /// Throws Error(invalid_argument) on a kernel, stride, dilation or group count below 1, a list
    /// of another length, a negative top or left pad. A negative bottom or right pad crops:
    /// gradients of a transposed convolution with output padding use it.
    static Conv2dOptions read(const Attrs& attrs);

    /// Rows (dim 0) or columns (dim 1) of the output for `size` of them in the input; below 1 where
    /// the kernel does not fit.
    std::int64_t output_size(std::int64_t size, int dim) const;
};

/// Every size of a convolution y = x * weight, the same numbers for the forward problem and for its
/// gradients: x [n, in, h, w], weight [out, in/groups, kh, kw], y [n, out, oh, ow].
struct Geometry {
    std::int64_t n, in, h, w, out, oh, ow, kh, kw;
    std::int64_t groups, sh, sw, pt, pl, dh, dw;  ///< strides, top and left pads, dilations

    std::int64_t group_in() const { return in / groups; }
    std::int64_t group_out() const { return out / groups; }
    /// 2 x multiply-adds by the direct method.
    double flops() const {
        return 2.0 * static_cast<double>(n * out) * static_cast<double>(oh * ow) *
               static_cast<double>(group_in() * kh * kw);
    }
    /// 1x1 kernel, stride 1, no padding: a plain matrix product.
    bool pointwise() const {
        return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pt == 0 && pl == 0 && oh == h && ow == w;
    }
    bool depthwise() const { return groups == in && groups > 1; }

    static Geometry make(const Conv2dOptions& options, const Shape& x, const Shape& weight,
                         const Shape& y);
    /// Of a problem of Convolution2D, Convolution2DBackwardData or Convolution2DBackwardFilter.
    static Geometry of(const Problem& problem);
};

/// "Convolution2D", "Convolution2DBackwardData", "Convolution2DBackwardFilter".
extern const char* const forward_type;
extern const char* const backward_data_type;
extern const char* const backward_filter_type;

/// Whether a Convolution2D problem has a bias (its input 2).
inline bool has_bias(const Problem& problem) {
    return problem.attrs.has("bias") && problem.attrs.boolean("bias");
}

}  // namespace dlprim::conv2d
