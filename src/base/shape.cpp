// SPDX-License-Identifier: MIT
// Shape: checked dimensions, their products and strides, and numpy's broadcast.
#include <dlprim/shape.hpp>

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {
namespace {

std::string text_of(std::span<const std::int64_t> dims) {
    std::string text = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (i > 0) text += ", ";
        text += cat(dims[i]);
    }
    return text + "]";
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
    // Shapes are made in every call, so the text is built only when there is an error.
    const auto refuse = [&](const auto&... why) {
        fail(ErrorKind::invalid_argument, "shape ", text_of(dims), " has ", why...);
    };
    if (dims.size() > static_cast<std::size_t>(max_rank))
        refuse(dims.size(), " dimensions, at most ", max_rank, " are supported");
    constexpr std::int64_t limit = std::int64_t{1} << 60;
    rank_ = static_cast<int>(dims.size());
    bool zero = false;
    for (std::int64_t size : dims) {
        if (size < 0) refuse("a negative dimension");
        zero = zero || size == 0;
    }
    // The product of the non-zero dimensions is checked too, because strides and views are made
    // from it.
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) {
        dims_[i] = dims[i];
        if (dims[i] == 0) continue;
        if (product > limit / dims[i]) refuse("more than 2^60 elements");
        product *= dims[i];
    }
    numel_ = zero ? 0 : product;
}

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(const std::vector<std::int64_t>& dims)
    : Shape(std::span<const std::int64_t>(dims.data(), dims.size())) {}

std::int64_t Shape::product(int begin, int end) const noexcept {
    std::int64_t result = 1;
    for (int i = std::max(begin, 0); i < std::min(end, rank_); ++i) result *= dims_[i];
    return result;
}

Shape Shape::with(int i, std::int64_t size) const {
    if (i < -rank_ || i >= rank_)
        fail(ErrorKind::invalid_argument, "dimension ", i, " is not in shape ", str());
    std::vector<std::int64_t> dims = to_vector();
    dims[static_cast<std::size_t>(i < 0 ? i + rank_ : i)] = size;
    return Shape(dims);
}

std::vector<std::int64_t> Shape::strides() const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(rank_), 1);
    for (int i = rank_ - 2; i >= 0; --i)
        result[static_cast<std::size_t>(i)] =
            result[static_cast<std::size_t>(i) + 1] * std::max<std::int64_t>(dims_[i + 1], 1);
    return result;
}

bool Shape::operator==(const Shape& other) const noexcept {
    return std::ranges::equal(dims(), other.dims());
}

std::string Shape::str() const {
    return text_of(dims());
}

Shape broadcast(const Shape& a, const Shape& b) {
    const int rank = std::max(a.rank(), b.rank());
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
    for (int i = 1; i <= rank; ++i) {
        const std::int64_t left = i <= a.rank() ? a[-i] : 1;
        const std::int64_t right = i <= b.rank() ? b[-i] : 1;
        if (left != right && left != 1 && right != 1)
            fail(ErrorKind::invalid_argument, "shapes ", a.str(), " and ", b.str(),
                 " do not broadcast: dimension ", -i, " is ", left, " in one and ", right,
                 " in the other");
        dims[static_cast<std::size_t>(rank - i)] = left == 1 ? right : left;
    }
    return Shape(dims);
}

}  // namespace dlprim
