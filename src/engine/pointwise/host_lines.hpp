// SPDX-License-Identifier: MIT
// How the host's interpreter of jobs handles a line of elements: it reads them from memory of any
// type, applies one instruction, and writes them back.
#pragma once

#include "base/number_types.hpp"
#include "base/odd_float.hpp"
#include "engine/pointwise/host_fused.hpp"
#include "engine/pointwise/host_vectors.hpp"
#include "engine/pointwise/special_functions.hpp"

#include <dlprim/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dlprim::pointwise::lines {

/// Calls `go` with a value of the type that stores elements.
template <typename Go>
void with_type(DType dtype, const Go& go) {
    const auto others = [&] {
        if (dtype == DType::boolean) go(std::uint8_t{});
        if (dtype == DType::f16 || dtype == DType::bf16) go(std::uint16_t{});
        // No program takes narrow types.
    };
    with_number_type(dtype, go, others);
}

template <typename T>
void load(const std::byte* base, DType dtype, std::int64_t offset, std::int64_t stride,
          std::int64_t n, T* into) {
    with_type(dtype, [&](auto zero) {
        using S = decltype(zero);
        const S* from = reinterpret_cast<const S*>(base) + offset;
        if (dtype == DType::f16) {
            for (std::int64_t j = 0; j < n; ++j)
                into[j] =
                    static_cast<T>(half_to_float(static_cast<std::uint16_t>(from[j * stride])));
        } else if (dtype == DType::bf16) {
            for (std::int64_t j = 0; j < n; ++j)
                into[j] =
                    static_cast<T>(bfloat16_to_float(static_cast<std::uint16_t>(from[j * stride])));
        } else if (stride == 1) {  // + makes an int of an int8, which is a number and no character
            for (std::int64_t j = 0; j < n; ++j) into[j] = static_cast<T>(+from[j]);
        } else if (stride == 0) {
            std::fill_n(into, n, static_cast<T>(*from));
        } else {
            for (std::int64_t j = 0; j < n; ++j) into[j] = static_cast<T>(+from[j * stride]);
        }
    });
}

/// saturated() of a line, for types that compilers have vectors of: without branches, and by 32-bit
/// integers.
template <typename S, typename T>
void store_narrowed(const T* from, S* into, std::int64_t n) {
    // Double holds the limits of 32 bits; float holds those of fewer.
    using Wide = std::conditional_t<sizeof(S) < 4, T, double>;
    constexpr auto least = static_cast<Wide>(std::numeric_limits<S>::min()),
                   most = static_cast<Wide>(std::numeric_limits<S>::max());
    for (std::int64_t j = 0; j < n; ++j) {
        const auto value = static_cast<Wide>(from[j]);
        // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
        const Wide number = value != value ? Wide(0) : value;
        const Wide low = number > least ? number : least;
        into[j] = static_cast<S>(static_cast<std::int32_t>(low < most ? low : most));
    }
}

template <typename T>
void store(std::byte* base, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t n,
           const T* from) {
    with_type(dtype, [&](auto zero) {
        using S = decltype(zero);
        S* into = reinterpret_cast<S*>(base) + offset;
        if constexpr (std::is_same_v<S, T>) {
            if (stride == 1) {
                std::copy_n(from, n, into);
                return;
            }
        }
        if constexpr (std::is_floating_point_v<T> && std::is_integral_v<S> &&
                      (sizeof(S) < 4 || std::is_same_v<S, std::int32_t>)) {
            const bool is_number = dtype != DType::f16 && dtype != DType::bf16;
            if (stride == 1 && is_number && dtype != DType::boolean)
                return store_narrowed(from, into, n);
        }
        if constexpr (std::is_integral_v<T> && std::is_integral_v<S>) {
            const bool is_number = dtype != DType::f16 && dtype != DType::bf16;
            if (stride == 1 && is_number && dtype != DType::boolean) {
                for (std::int64_t j = 0; j < n; ++j) into[j] = static_cast<S>(from[j]);
                return;
            }
        }
        for (std::int64_t j = 0; j < n; ++j) {
            S& to = into[j * stride];
            if (dtype == DType::f16)
                to = static_cast<S>(float_to_half(odd_float(from[j])));
            else if (dtype == DType::bf16)
                to = static_cast<S>(float_to_bfloat16(odd_float(from[j])));
            else if (dtype == DType::boolean)
                to = static_cast<S>(from[j] != 0);
            else
                to = saturated<S>(from[j]);
        }
    });
}

template <typename T, typename F>
void map1(const T* a, T* y, std::int64_t n, F f) {
    for (std::int64_t j = 0; j < n; ++j) y[j] = f(a[j]);
}
template <typename T, typename F>
void map2(const T* a, const T* b, T* y, std::int64_t n, F f) {
    for (std::int64_t j = 0; j < n; ++j) y[j] = f(a[j], b[j]);
}

/// Quotients and remainders of integers. Returns false for other operations.
template <typename T>
bool compute_quotient(Op op, const T* a, const T* b, T* y, std::int64_t n) {
    switch (op) {
        case Op::fmod:
            map2(a, b, y, n, [](T p, T q) { return rest_of(p, q); });
            return true;
        case Op::remainder:
            map2(a, b, y, n, [](T p, T q) { return floor_rest(p, q); });
            return true;
        case Op::floordiv:
            map2(a, b, y, n, [](T p, T q) { return floor_quotient_of(p, q); });
            return true;
        case Op::truncdiv:
            map2(a, b, y, n, [](T p, T q) { return static_cast<T>(quotient(p, q)); });
            return true;
        default:
            return false;
    }
}

/// Applies one instruction to a chunk.
template <typename T>
void compute(Op op, const T* a, const T* b, const T* c, T* y, std::int64_t n) {
    if constexpr (std::is_same_v<T, float>)
        if (vector_lines().compute(op, a, b, c, y, n)) return;
    const auto one = [&](auto of) { map1(a, y, n, of); };
    const auto two = [&](auto of) { map2(a, b, y, n, of); };
    switch (op) {
        case Op::add:
            return two([](T p, T q) { return p + q; });
        case Op::sub:
            return two([](T p, T q) { return p - q; });
        case Op::mul:
            return two([](T p, T q) { return p * q; });
        case Op::less:
            return two([](T p, T q) { return p < q ? T(1) : T(0); });
        case Op::less_equal:
            return two([](T p, T q) { return p <= q ? T(1) : T(0); });
        case Op::greater:
            return two([](T p, T q) { return p > q ? T(1) : T(0); });
        case Op::greater_equal:
            return two([](T p, T q) { return p >= q ? T(1) : T(0); });
        case Op::equal:
            return two([](T p, T q) { return p == q ? T(1) : T(0); });
        case Op::not_equal:
            return two([](T p, T q) { return p != q ? T(1) : T(0); });
        case Op::neg:
            return one([](T p) { return static_cast<T>(-p); });
        case Op::max:
            return two([](T p, T q) { return p > q || is_nan(p) ? p : q; });
        case Op::min:
            return two([](T p, T q) { return p < q || is_nan(p) ? p : q; });
        case Op::select:
            for (std::int64_t j = 0; j < n; ++j) y[j] = a[j] != 0 ? b[j] : c[j];
            return;
        case Op::fma:
            if constexpr (std::is_floating_point_v<T>)
                fused_line(a, b, c, y, n);
            else
                for (std::int64_t j = 0; j < n; ++j) y[j] = a[j] * b[j] + c[j];
            return;
        case Op::abs:
            return one([](T p) { return p < 0 ? static_cast<T>(-p) : p; });
        default:
            break;
    }
    if constexpr (std::is_integral_v<T>) {
        if (std::is_unsigned_v<T> && op == Op::shift_right) {  // no sign moves in
            for (std::int64_t j = 0; j < n; ++j)
                y[j] = b[j] > 63 ? T(0) : static_cast<T>(a[j] >> b[j]);
            return;
        }
        if (compute_quotient(op, a, b, y, n)) return;
        if (is_bitwise(op)) {
            for (std::int64_t j = 0; j < n; ++j)
                y[j] = static_cast<T>(apply_bits(op, static_cast<std::int64_t>(a[j]),
                                                 b ? static_cast<std::int64_t>(b[j]) : 0));
            return;
        }
    }
    if constexpr (std::is_floating_point_v<T>) {
        switch (op) {
            case Op::div:
                return two([](T p, T q) { return p / q; });
            case Op::sqrt:
                return one([](T p) { return std::sqrt(p); });
            case Op::rsqrt:
                return one([](T p) { return T(1) / std::sqrt(p); });
            case Op::pow:
                return two([](T p, T q) { return std::pow(p, q); });
            case Op::nextafter:
                return two([](T p, T q) { return std::nextafter(p, q); });
            default:
                break;
        }
    }
    for (std::int64_t j = 0; j < n; ++j)
        y[j] =
            static_cast<T>(apply(op, static_cast<double>(a[j]), b ? static_cast<double>(b[j]) : 0.0,
                                 c ? static_cast<double>(c[j]) : 0.0));
}

}  // namespace dlprim::pointwise::lines
