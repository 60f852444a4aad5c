// SPDX-License-Identifier: MIT
// Images at places between their elements, which the device computes: for GridSample, RoiAlign and
// DeformConv. Every neighbour of a place is a row of a table that an Embedding reads; it is
// weighted and added.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

struct Sampling {
    enum class Kind { nearest, linear, cubic };
    enum class Padding { zeros, border, reflection };

    Kind kind = Kind::linear;
    Padding padding = Padding::zeros;
    bool align_corners = false;  ///< where reflection turns: at the outer elements or their borders
};

/// The image [N, C, sizes...] as a table [N * elements, C] of floats.
Ref image_table(Builder& build, Ref image);

/// The image at places [N, P, 1], a coordinate in elements for each of its dimensions, as
/// [N, P, C] in float.
Ref sampled(Call& call, Ref image, const std::vector<Ref>& places, const Sampling& how);

/// The code that moves a coordinate `x` into a dimension of `size` elements: unchanged with zeros
/// around, to the border, or reflected.
std::string moved_inside(const Sampling& how, std::int64_t size, const std::string& x);

}  // namespace dlprim::onnx
