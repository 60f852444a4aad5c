// SPDX-License-Identifier: MIT
// Strided and padded copies by the host's threads.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/strided_copy.hpp"
#include "engine/strided_copy_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dlprim {

namespace {

/// Where in x and y row `i` begins, of those that the first `dims` dimensions count.
struct Row {
    Row(const StridedCopy& copy, std::size_t dims, std::int64_t i)
        : x(copy.x_offset), y(copy.y_offset) {
        for (std::size_t d = dims; d-- > 0;) {
            const std::int64_t c = i % copy.sizes[d];
            i /= copy.sizes[d];
            x += c * copy.x_strides[d];
            y += c * copy.y_strides[d];
        }
    }
    std::int64_t x, y;
};

template <typename T>
void host_copy_as(HostPool& pool, const StridedCopy& copy, const T* x, T* y) {
    const std::size_t n = copy.sizes.size();
    const std::int64_t length = copy.sizes[n - 1];
    const std::int64_t xs = copy.x_strides[n - 1], ys = copy.y_strides[n - 1];
    // Long rows are divided, so that a copy of a single row also uses every thread.
    const std::int64_t cut = std::min(length, copy_piece);
    const std::int64_t cuts = ceil_div(length, cut);
    const std::int64_t tasks = product_of(copy.sizes, n - 1) * cuts;
    pool.parallel_for(
        tasks, std::max<std::int64_t>(1, copy_piece / cut), [&](std::int64_t a, std::int64_t b) {
            for (std::int64_t task = a; task < b; ++task) {
                const Row row(copy, n - 1, task / cuts);
                const std::int64_t begin = task % cuts * cut, end = std::min(begin + cut, length);
                if (xs == 1 && ys == 1) {
                    std::memcpy(y + row.y + begin, x + row.x + begin,
                                to_size(end - begin) * sizeof(T));
                } else {
                    for (std::int64_t k = begin; k < end; ++k)
                        y[row.y + k * ys] = x[row.x + k * xs];
                }
            }
        });
}

/// Transposition: dimension n - 2 is contiguous in x and n - 1 in y. Copied in tiles that fit into
/// the cache.
template <typename T>
void host_transpose_as(HostPool& pool, const StridedCopy& copy, const T* x, T* y) {
    constexpr std::int64_t tile = 32;
    const std::size_t n = copy.sizes.size();
    const std::int64_t n6 = copy.sizes[n - 2], n7 = copy.sizes[n - 1];
    const std::int64_t tiles = ceil_div(n6, tile);
    pool.parallel_for(
        product_of(copy.sizes, n - 2) * tiles, std::max<std::int64_t>(1, copy_piece / (tile * n7)),
        [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t task = first; task < last; ++task) {
                const Row row(copy, n - 2, task / tiles);
                const std::int64_t r0 = task % tiles * tile, r1 = std::min(r0 + tile, n6);
                for (std::int64_t c0 = 0; c0 < n7; c0 += tile) {
                    const std::int64_t c1 = std::min(c0 + tile, n7);
                    for (std::int64_t r = r0; r < r1; ++r)
                        for (std::int64_t c = c0; c < c1; ++c)
                            y[row.y + r * copy.y_strides[n - 2] + c] =
                                x[row.x + c * copy.x_strides[n - 1] + r];
                }
            }
        });
}

template <typename T>
void host_pad_as(HostPool& pool, const PaddedCopy& copy, const T* x, T* y) {
    const std::size_t n = copy.y_sizes.size();
    const std::int64_t length = copy.y_sizes[n - 1], source_length = copy.x_sizes[n - 1];
    const std::int64_t before = copy.before[n - 1];
    T fill{};
    std::memcpy(&fill, &copy.fill, sizeof(T));
    // The position in x that coordinate c of y reads, or -1 for the constant.
    const auto position = [&](std::int64_t c, std::size_t d) {
        const std::int64_t size_d = copy.x_sizes[d];
        c -= copy.before[d];
        switch (copy.mode) {
            case PaddedCopy::Mode::constant:
                return c < 0 || c >= size_d ? std::int64_t{-1} : c;
            case PaddedCopy::Mode::reflect:
                if (c < 0) c = -c;
                return c >= size_d ? 2 * (size_d - 1) - c : c;
            case PaddedCopy::Mode::circular:
                return c < 0 ? c + size_d : c >= size_d ? c - size_d : c;
            case PaddedCopy::Mode::replicate:
                break;
        }
        return std::clamp<std::int64_t>(c, 0, size_d - 1);
    };
    pool.parallel_for(
        product_of(copy.y_sizes, n - 1), std::max<std::int64_t>(1, copy_piece / length),
        [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t row = first; row < last; ++row) {
                std::int64_t i = row, xi = 0, stride = source_length;
                bool inside = true;
                for (std::size_t d = n - 1; d-- > 0;) {
                    const std::int64_t c = position(i % copy.y_sizes[d], d);
                    i /= copy.y_sizes[d];
                    inside = inside && c >= 0;
                    xi += c * stride;
                    stride *= copy.x_sizes[d];
                }
                T* to = y + row * length;
                if (!inside) {
                    std::fill(to, to + length, fill);
                } else if (copy.mode == PaddedCopy::Mode::constant) {
                    const std::int64_t begin = std::clamp<std::int64_t>(before, 0, length);
                    const std::int64_t end =
                        std::clamp<std::int64_t>(source_length + before, begin, length);
                    std::fill(to, to + begin, fill);
                    if (end > begin)
                        std::memcpy(to + begin, x + xi + begin - before,
                                    to_size(end - begin) * sizeof(T));
                    std::fill(to + end, to + length, fill);
                } else {
                    for (std::int64_t k = 0; k < length; ++k) to[k] = x[xi + position(k, n - 1)];
                }
            }
        });
}

template <typename F>
void with_type(std::size_t element_bytes, F&& f) {
    switch (element_bytes) {
        case 1:
            return f(std::uint8_t{});
        case 2:
            return f(std::uint16_t{});
        case 4:
            return f(std::uint32_t{});
        case 8:
            return f(std::uint64_t{});
    }
    fail(ErrorKind::unsupported, "elements of ", element_bytes, " bytes cannot be copied");
}

}  // namespace

void host_copy(HostPool& pool, const StridedCopy& whole, const std::byte* x, std::byte* y) {
    StridedCopy copy = merged(whole);
    if (product_of(copy.sizes, copy.sizes.size()) == 0) return;
    const std::optional<Transposition> transposed = transposition(copy, false);
    if (transposed) copy = transposed->copy;
    with_type(copy.element_bytes, [&](auto element) {
        using T = decltype(element);
        const T* from = reinterpret_cast<const T*>(x);
        T* to = reinterpret_cast<T*>(y);
        if (transposed)
            host_transpose_as(pool, copy, from, to);
        else
            host_copy_as(pool, copy, from, to);
    });
}

void host_copy(HostPool& pool, const PaddedCopy& whole, const std::byte* x, std::byte* y) {
    const PaddedCopy copy = merged(whole);
    if (product_of(copy.y_sizes, copy.y_sizes.size()) == 0) return;
    with_type(copy.element_bytes, [&](auto element) {
        using T = decltype(element);
        host_pad_as(pool, copy, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(y));
    });
}

}  // namespace dlprim
