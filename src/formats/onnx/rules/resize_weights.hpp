// SPDX-License-Identifier: MIT
// Resizing along one axis as a matrix: which inputs make each output, and how much of them. It
// covers all of ONNX's coordinates, kernels and roundings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// Resize's attributes, by ONNX's names.
struct ResizeWay {
    std::string mode, coordinates, nearest;
    double cubic_coeff = -0.75, extrapolation = 0;
    bool antialias = false, exclude_outside = false;
};

/// One axis: its sizes, the scale from one to the other, and the region for tf_crop_and_resize.
struct ResizeAxis {
    int axis = 0;
    std::int64_t in = 1, out = 1;
    double scale = 1, begin = 0, end = 1;
};

struct ResizeWeights {
    std::vector<double> weights;  ///< [out, in]
    std::vector<double> added;    ///< [out]: the value of outputs outside of the region, or empty
};

/// Whether the words are ONNX's: "linear", "half_pixel", "floor".
bool is_known_way(const ResizeWay& way);
ResizeWeights resize_weights(const ResizeWay& way, const ResizeAxis& axis);

}  // namespace dlprim::onnx
