// SPDX-License-Identifier: MIT
// Sizes: options and shapes of Convolution and TransposedConvolution, for images of one to three
// dimensions.
#pragma once

#include "graph/operator.hpp"

#include <array>

namespace dlprim::conv2d {

/// One dimension of a convolution. The larger image is the input of a convolution and the output of
/// a transposed one: element s of the smaller meets elements s * stride - pad + tap * dilate of it.
struct Axis {
    std::int64_t large = 1, small = 1;
    std::int64_t kernel = 1, stride = 1, pad = 0, pad_end = 0, dilate = 1, output_pad = 0;
};

/// All sizes of a convolution.
struct Sizes {
    bool transposed = false;
    int dims = 0;  ///< 1 to 3
    std::int64_t batch = 1, in = 1, out = 1, groups = 1;
    bool bias = true;
    std::array<Axis, 3> axes{};  ///< depth, height, width; those that images lack have one element

    /// Throws Error(invalid_argument) if options or shape are invalid. `x`: [N, C, spatial...].
    Sizes(const Attrs& attrs, const Shape& x, bool is_transposed);

    /// [out, in / groups, kernel...], or [in, out / groups, kernel...] if it is transposed.
    Shape weight() const;
    Shape output() const;
    /// Multiply-adds.
    double products() const;
    /// The last `count` of the axes, as a list of one of their members.
    Ints list(std::int64_t Axis::*member, int count) const;

  private:
    void read(const Attrs& attrs);
};

std::vector<ParamSpec> params(const Sizes& sizes, DType dtype);

void oracle(OracleCall& call, bool transposed);
void oracle_backward(OracleBackwardCall& call, bool transposed);

}  // namespace dlprim::conv2d
