// SPDX-License-Identifier: MIT
// Options of convolutions of images of two dimensions and of their two gradient operators, and the
// geometry that engines work with.
#pragma once

#include "base/attrs.hpp"
#include "engine/problem.hpp"

#include <dlprim/shape.hpp>

#include <array>
#include <cstdint>

namespace dlprim::conv2d {

/// Options as read from Attrs. Pairs are [height, width].
struct Conv2dOptions {
    std::int64_t groups;
    std::array<std::int64_t, 2> kernel, stride;
    std::array<std::int64_t, 4> pad;  ///< top, left, bottom, right
    std::array<std::int64_t, 2> dilate;

    /// Of lists that Convolution or TransposedConvolution has checked. A negative bottom or right
    /// pad crops; gradients of a transposed convolution with output padding use it.
    static Conv2dOptions read(const Attrs& attrs);

    /// Rows (dim 0) or columns (dim 1) of the output for an input of that `size`. Below 1 if the
    /// kernel does not fit.
    std::int64_t output_size(std::int64_t size, int dim) const;
};

/// All sizes of a convolution y = x * weight. They are the same for the forward problem and its
/// gradients: x [n, in, h, w], weight [out, in/groups, kh, kw], y [n, out, oh, ow].
struct Geometry {
    std::int64_t n, in, h, w, out, oh, ow, kh, kw;
    std::int64_t groups, sh, sw, pt, pl, dh, dw;  ///< strides, top and left pads, dilations

    std::int64_t group_in() const { return in / groups; }
    std::int64_t group_out() const { return out / groups; }
    /// 2 x multiply-adds of the direct method.
    double flops() const {
        return 2.0 * static_cast<double>(n * out) * static_cast<double>(oh * ow) *
               static_cast<double>(group_in() * kh * kw);
    }
    /// Whether it is a plain matrix product: 1x1 kernel, stride 1, no padding.
    bool pointwise() const {
        return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pt == 0 && pl == 0 && oh == h && ow == w;
    }
    bool depthwise() const { return groups == in && groups > 1; }

    static Geometry make(const Conv2dOptions& options, const Shape& x, const Shape& weight,
                         const Shape& y);
    /// The geometry of a problem of one of the three types.
    static Geometry of(const Problem& problem);
    /// Where it goes along columns alone, the same as one along rows: the memory is the same, and
    /// loops over rows are long.
    Geometry lying() const;
};

/// The types of engines' problems: "Convolution2D", by which tunings have been saved, of
/// Convolution, "Convolution2DBackwardData", "Convolution2DBackwardFilter".
extern const char* const forward_type;
extern const char* const backward_data_type;
extern const char* const backward_filter_type;

/// Whether a problem of Convolution has a bias (its input 2).
inline bool has_bias(const Problem& problem) {
    return problem.attrs.has("bias") && problem.attrs.boolean("bias");
}

}  // namespace dlprim::conv2d
