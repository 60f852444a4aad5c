// SPDX-License-Identifier: MIT
// Windows: the geometry of PoolingND and AdaptivePooling, for one to three spatial dimensions, by
// PyTorch's rules.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <array>

namespace dlprim::pooling_nd {

constexpr const char* pooling_type = "PoolingND";
constexpr const char* adaptive_type = "AdaptivePooling";
constexpr const char* pooling_backward_type = "PoolingNDBackward";
constexpr const char* adaptive_backward_type = "AdaptivePoolingBackward";
/// The position of a maximum: its index in the input's spatial dimensions, flattened.
constexpr DType index_type = DType::i64;

/// The windows along one dimension. Positions are those of the input and may be in its padding. The
/// windows of adaptive pooling do not use kernel, stride, pads and dilation.
struct Axis {
    std::int64_t in = 1, out = 1;
    std::int64_t kernel = 1, stride = 1, pad = 0, pad_end = 0, dilate = 1;
};

struct Windows {
    bool adaptive = false, average = false, indices = false;
    bool count_include_pad = false;
    std::int64_t divisor = 0;    ///< of averages; 0: the window's number of elements
    std::int64_t planes = 1;     ///< N * C
    std::array<Axis, 3> axes{};  ///< depth, height, width; those that x lacks have one element
    Shape output;

    /// Throws Error(invalid_argument) if options or shape are invalid. `x`: [N, C, spatial...].
    Windows(const Attrs& attrs, const Shape& x, bool is_adaptive);
    /// The elements of a plane of x, and of y.
    std::int64_t in_elements() const { return axes[0].in * axes[1].in * axes[2].in; }
    std::int64_t out_elements() const { return axes[0].out * axes[1].out * axes[2].out; }

  private:
    void read_fixed(const Attrs& attrs, const Shape& x);
    void read_adaptive(const Attrs& attrs, const Shape& x);
};

}  // namespace dlprim::pooling_nd
