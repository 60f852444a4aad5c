// SPDX-License-Identifier: MIT
// TransposedConvolution2D: x [N, in, H, W], weight [in, out/groups, kh, kw][, bias [out]] ->
// [N, out, (H-1) stride - pads + dilate (kh-1) + output_pad + 1, ...]. A composite.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::transposed_conv2d {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::transposed_conv2d
