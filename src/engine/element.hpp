// SPDX-License-Identifier: MIT
// Elements of every type but the narrow ones, for engines that compare and add them: how kernels
// (kernels/common/compared_element.clh) and host code read, compute with and write them.
#pragma once

#include "base/number_types.hpp"
#include "base/text.hpp"

#include <dlprim/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace dlprim {

/// Compiler options of a kernel that includes common/compared_element.clh: KIND, T and VALUE.
std::string element_defines(DType dtype);

/// Throws Error(invalid_argument) for elements of narrow types, which have no order and no sums.
void require_comparable(DType dtype);

/// A type whose elements are computed with as they lie in memory.
template <typename T>
struct PlainElement {
    using Value = T;
    static Value load(const std::byte* data, std::int64_t i) {
        T value;
        std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        return value;
    }
    static void store(std::byte* data, std::int64_t i, Value value) {
        std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
};

/// A float of 16 bits, which is computed with as a float.
template <auto widen, auto narrow>
struct NarrowElement {
    using Value = float;
    static Value load(const std::byte* data, std::int64_t i) {
        return widen(PlainElement<std::uint16_t>::load(data, i));
    }
    static void store(std::byte* data, std::int64_t i, Value value) {
        PlainElement<std::uint16_t>::store(data, i, narrow(value));
    }
};

/// A truth: 0 or 1.
struct TruthElement {
    using Value = std::uint8_t;
    static Value load(const std::byte* data, std::int64_t i) {
        return PlainElement<std::uint8_t>::load(data, i) != 0 ? 1 : 0;
    }
    static void store(std::byte* data, std::int64_t i, Value value) {
        PlainElement<std::uint8_t>::store(data, i, value != 0 ? 1 : 0);
    }
};

/// The result of visit(E()), where E is the struct above for elements of this type.
template <typename Visit>
auto visit_element(DType dtype, Visit&& visit) {
    const auto others = [&]() -> decltype(visit(TruthElement())) {
        switch (dtype) {
            case DType::f16:
                return visit(NarrowElement<half_to_float, float_to_half>());
            case DType::bf16:
                return visit(NarrowElement<bfloat16_to_float, float_to_bfloat16>());
            case DType::boolean:
                return visit(TruthElement());
            default:
                fail(ErrorKind::invalid_argument, "elements of ", name_of(dtype),
                     " are only moved; cast them");
        }
    };
    return with_number_type(
        dtype, [&](auto zero) { return visit(PlainElement<decltype(zero)>()); }, others);
}

}  // namespace dlprim
