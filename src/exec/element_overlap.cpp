// SPDX-License-Identifier: MIT
// Overlaps of strided views: by their strides where that decides, else by visiting the elements.
#include "exec/element_overlap.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// Dimensions of more than one element, as (stride, size).
using Dims = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Whether some element is visited twice.
bool visits_twice(const Dims& dims, std::int64_t last) {
    std::vector<bool> seen(static_cast<std::size_t>(last) + 1, false);
    std::vector<std::int64_t> index(dims.size(), 0);
    std::int64_t at = 0;
    for (;;) {
        if (seen[static_cast<std::size_t>(at)]) return true;
        seen[static_cast<std::size_t>(at)] = true;
        std::size_t d = 0;
        for (; d < dims.size(); ++d) {
            at += dims[d].first;
            if (++index[d] < dims[d].second) break;
            at -= dims[d].first * dims[d].second;
            index[d] = 0;
        }
        if (d == dims.size()) return false;
    }
}

std::uint64_t extent_bytes(const StridedPlace& place, const Shape& shape,
                           std::size_t element_bytes) {
    std::int64_t last = 0;
    for (int d = 0; d < shape.rank(); ++d)
        last += (shape[d] - 1) * place.strides[static_cast<std::size_t>(d)];
    return (static_cast<std::uint64_t>(last) + 1) * element_bytes;
}

}  // namespace

bool overlaps_itself(const Shape& shape, const std::vector<std::int64_t>& strides) {
    if (shape.empty()) return false;
    Dims dims;
    for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] > 1) dims.emplace_back(strides[static_cast<std::size_t>(d)], shape[d]);
    std::sort(dims.begin(), dims.end());
    // Usually each stride is larger than all that lies inside the smaller ones.
    std::int64_t last = 0;
    bool nested = true;
    for (const auto& [stride, size] : dims) {
        if (stride == 0) return true;
        nested = nested && stride > last;
        last += stride * (size - 1);
    }
    return !nested && visits_twice(dims, last);
}

std::uint64_t first_byte(const StridedPlace& place) {
    const std::byte* const host = place.buffer->host();
    return place.byte_offset +
           (host == nullptr ? place.buffer->offset() : reinterpret_cast<std::uintptr_t>(host));
}

bool may_overlap(const StridedPlace& a, const StridedPlace& b, const Shape& shape,
                 std::size_t element_bytes) {
    if (a.buffer->handle() != b.buffer->handle() || shape.empty()) return false;
    return first_byte(a) < first_byte(b) + extent_bytes(b, shape, element_bytes) &&
           first_byte(b) < first_byte(a) + extent_bytes(a, shape, element_bytes);
}

}  // namespace dlprim
