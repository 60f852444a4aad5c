// SPDX-License-Identifier: MIT
// How scatter.host reads, combines and writes elements of each type.
#pragma once

#include "ops/scatter/options.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace dlprim::scatter {

template <typename T>
T read_as(const std::byte* data, std::int64_t i) {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
void write_as(std::byte* data, std::int64_t i, T value) {
    std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

/// A NaN is the largest and the smallest.
struct InDouble {
    using Sum = double;
    static Sum combine(Reduction reduction, Sum a, Sum b) {
        switch (reduction) {
            case Reduction::add:
            case Reduction::mean:
                return a + b;
            case Reduction::mul:
                return a * b;
            case Reduction::max:
                return a > b || a != a ? a : b;
            case Reduction::min:
                return a < b || a != a ? a : b;
            case Reduction::none:
                break;
        }
        return b;
    }
    static Sum divided(Sum sum, std::int64_t count) { return sum / static_cast<Sum>(count); }
};

template <typename T>
struct Float : InDouble {
    static Sum load(const std::byte* data, std::int64_t i) { return read_as<T>(data, i); }
    static void store(std::byte* data, std::int64_t i, Sum value) {
        write_as(data, i, static_cast<T>(value));
    }
};

/// Floats of 16 bits.
template <auto widen, auto narrow>
struct Narrow : InDouble {
    static Sum load(const std::byte* data, std::int64_t i) {
        return static_cast<Sum>(widen(read_as<std::uint16_t>(data, i)));
    }
    static void store(std::byte* data, std::int64_t i, Sum value) {
        write_as(data, i, narrow(static_cast<float>(value)));
    }
};

/// Sums and products wrap around.
template <typename T>
struct Integer {
    using Sum = T;
    static Sum load(const std::byte* data, std::int64_t i) { return read_as<T>(data, i); }
    static void store(std::byte* data, std::int64_t i, Sum value) { write_as(data, i, value); }
    static Sum combine(Reduction reduction, Sum a, Sum b) {
        const auto wide_a = static_cast<std::uint64_t>(+a), wide_b = static_cast<std::uint64_t>(+b);
        switch (reduction) {
            case Reduction::add:
            case Reduction::mean:
                return static_cast<Sum>(wide_a + wide_b);
            case Reduction::mul:
                return static_cast<Sum>(wide_a * wide_b);
            case Reduction::max:
                return a > b ? a : b;
            case Reduction::min:
                return a < b ? a : b;
            case Reduction::none:
                break;
        }
        return b;
    }
    /// Rounded down.
    static Sum divided(Sum sum, std::int64_t count) {
        using Wide = std::conditional_t<sizeof(T) == 8, T, std::int64_t>;
        const auto by = static_cast<Wide>(count), wide = static_cast<Wide>(+sum);
        const bool is_below = std::is_signed_v<T> && sum < 0 && wide % by != 0;
        return static_cast<Sum>(wide / by - (is_below ? 1 : 0));
    }
};

/// A sum or maximum of truths is "or", a product or minimum "and".
struct Truth {
    using Sum = std::uint8_t;
    static Sum load(const std::byte* data, std::int64_t i) {
        return read_as<std::uint8_t>(data, i) != 0 ? 1 : 0;
    }
    static void store(std::byte* data, std::int64_t i, Sum value) { write_as(data, i, value); }
    static Sum combine(Reduction reduction, Sum a, Sum b) {
        if (reduction == Reduction::none) return b;
        const bool either = reduction != Reduction::mul && reduction != Reduction::min;
        return either ? (a > b ? a : b) : (a < b ? a : b);
    }
    static Sum divided(Sum sum, std::int64_t) { return sum; }
};

}  // namespace dlprim::scatter
