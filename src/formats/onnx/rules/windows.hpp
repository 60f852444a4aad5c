// SPDX-License-Identifier: MIT
// Windows of convolutions and pooling: kernel, strides, dilations and padding of images of any
// number of dimensions. Images of one dimension are taken as [N, C, 1, W].
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

struct Windows {
    int dims = 2;                                 ///< of the model's images
    Ints kernel, stride, dilation;                ///< [height, width], or [depth, height, width]
    Ints pad;                                     ///< in front of each dimension, then behind each
    bool same_upper = false, same_lower = false;  ///< auto_pad asks for the input's size by stride

    /// Reads kernel_shape (`kernel` where the node has none), strides, dilations, pads and
    /// auto_pad. `transposed`: auto_pad is the caller's to settle.
    Windows(Call& call, const Shape& input, const Ints& kernel, bool transposed = false);
};

/// Throws Error(unsupported) for images of more than `most` dimensions.
void check_dims(const Call& call, const Windows& windows, const Shape& input, int most);

/// [N, C, W] as [N, C, 1, W]; an image of more dimensions as it is.
Ref as_image(Call& call, Ref value);
/// Back, where the model's images have one dimension.
Ref from_image(Call& call, Ref value, int dims);

/// [N, ..., C] as [N, C, ...], and back.
Ref channels_first(Builder& build, Ref value);
Ref channels_last(Builder& build, Ref value);

}  // namespace dlprim::onnx
