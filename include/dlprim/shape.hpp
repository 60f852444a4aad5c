// SPDX-License-Identifier: MIT
// Shape: the sizes of a tensor's dimensions, slowest first (NCHW), at most Shape::max_rank of them.
//
// A dimension may be 0 (the tensor is then empty) and never negative. The number of elements is
// checked for overflow when a Shape is made, so that numel() and sizes in bytes can be trusted.
//
// A Shape is a plain value: it owns nothing, and different threads may use different Shapes.
#pragma once

#include <dlprim/namespace.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

class Shape {
  public:
    static constexpr int max_rank = 8;

    Shape() = default;  ///< rank 0: a scalar, one element
    Shape(std::initializer_list<std::int64_t> dims);
    /// All three throw Error(invalid_argument) when there are more than max_rank dimensions, one is
    /// negative, or the product of those that are not 0 is above 2^60.
    explicit Shape(std::span<const std::int64_t> dims);
    explicit Shape(const std::vector<std::int64_t>& dims);

    int rank() const noexcept { return rank_; }
    /// Dimension i; negative i counts from the end. i must be in [-rank, rank).
    std::int64_t operator[](int i) const noexcept { return dims_[i < 0 ? i + rank_ : i]; }
    std::int64_t numel() const noexcept { return numel_; }  ///< number of elements
    bool empty() const noexcept { return numel_ == 0; }
    std::span<const std::int64_t> dims() const noexcept {
        return {dims_.data(), static_cast<std::size_t>(rank_)};
    }
    std::vector<std::int64_t> to_vector() const { return {dims().begin(), dims().end()}; }

    /// The product of dimensions [begin, end), which are clipped to [0, rank); 1 if there are none.
    std::int64_t product(int begin, int end) const noexcept;
    /// A copy with dimension i replaced; negative i counts from the end. Throws
    /// Error(invalid_argument) where there is no such dimension, or as the constructor does.
    Shape with(int i, std::int64_t size) const;
    /// Row-major strides in elements.
    std::vector<std::int64_t> strides() const;

    bool operator==(const Shape& other) const noexcept;
    bool operator!=(const Shape& other) const noexcept { return !(*this == other); }

    /// "[2, 3, 224, 224]".
    std::string str() const;

  private:
    std::array<std::int64_t, max_rank> dims_{};
    int rank_ = 0;
    std::int64_t numel_ = 1;
};

/// Numpy's broadcast of two shapes. Throws Error(invalid_argument), which names both shapes, where
/// they do not agree.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace dlprim
