// SPDX-License-Identifier: MIT
// Elements of windows of any number of dimensions, with dilations, for what Pooling does not have:
// p-norms and dilated means. It reads every element of every window from a table, so that it takes
// as many times the output's memory as a window has elements.
#pragma once

#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

/// Which elements of an image lie in each window.
struct WindowPositions {
    std::int64_t elements = 1;  ///< of a window
    Ints out;                   ///< the output's sizes
    Ints at;      ///< [elements, outputs]: positions in the image; its size stands for padding
    Ints counts;  ///< [outputs]: elements inside of the image, or inside of image and padding
};

/// `image`: [N, C, ...]. Throws Error(unsupported) where the windows have too many elements.
WindowPositions window_positions(Call& call, const Windows& windows, const Shape& image,
                                 bool ceil_mode, bool count_padding);

/// All windows' elements of a float image, [elements, outputs, N * C], with `padding` outside.
Ref window_elements(Call& call, Ref image, const WindowPositions& positions, double padding);
/// [outputs, N * C] as [N, C, ...].
Ref as_pooled(Call& call, Ref value, const Shape& image, const WindowPositions& positions);

}  // namespace dlprim::onnx
