// SPDX-License-Identifier: MIT
// Convolutions of three dimensions, by those of two: slices of the first dimension are images, and
// what a kernel sees of it are channels.
#pragma once

#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

/// [N, C, D, H, W] with a weight [O, C / groups, kd, kh, kw], perhaps plus a bias [O].
Ref volume_convolution(Call& call, Ref x, Ref weight, Ref bias, const Windows& windows,
                       std::int64_t groups);

/// [N, C, D, H, W] with a weight [C, O / groups, kd, kh, kw]. `output_pad`: behind each dimension.
Ref volume_transposed_convolution(Call& call, Ref x, Ref weight, Ref bias, const Windows& windows,
                                  const Ints& output_pad, std::int64_t groups);

}  // namespace dlprim::onnx
