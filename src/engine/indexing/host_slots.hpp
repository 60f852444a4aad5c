// SPDX-License-Identifier: MIT
// HostSlots: which slot of a tensor each part names, by indices in host memory.
#pragma once

#include "engine/indexing/indexing.hpp"

namespace dlprim {

class HostSlots {
  public:
    /// `indices`: int32 or int64, which must outlive this object.
    HostSlots(const Indexing& indexing, const std::byte* indices, DType dtype)
        : indexing_(indexing), indices_(indices), is_wide_(dtype == DType::i64) {}

    /// The slot of part n. Throws Error(invalid_argument), which names the index and its place,
    /// where it is outside of its dimension. The executor adds the operator's name.
    std::int64_t operator()(std::int64_t n) const {
        const auto components = std::ssize(indexing_.sizes);
        const std::int64_t first = n / indexing_.group % indexing_.period * components;
        std::int64_t slot = 0, rest = n;
        for (std::size_t d = indexing_.digits.size(); d-- > 0;) {
            slot += rest % indexing_.digits[d] * indexing_.strides[d];
            rest /= indexing_.digits[d];
        }
        for (std::int64_t k = 0; k < components; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const std::int64_t size = indexing_.sizes[at];
            std::int64_t index = index_at(first + k);
            if (index < 0 && indexing_.from_end) index += size;
            if (index < 0 || index >= size) refuse(first + k, size);
            slot += index * indexing_.multiples[at];
        }
        return slot;
    }

  private:
    std::int64_t index_at(std::int64_t place) const;
    [[noreturn]] void refuse(std::int64_t place, std::int64_t size) const;

    const Indexing& indexing_;
    const std::byte* indices_;
    bool is_wide_;
};

}  // namespace dlprim
