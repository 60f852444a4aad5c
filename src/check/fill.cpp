// SPDX-License-Identifier: MIT
// Fills tensors with random values.
#include "check/fill.hpp"

#include "base/text.hpp"
#include "check/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

namespace dlprim {

namespace {

/// A number between 0 and 1.
double draw_unit(std::mt19937& random) {
    return (static_cast<double>(random()) + 0.5) / 4294967296.0;
}

/// So many numbers that differ by 1, in any order.
std::vector<double> shuffled(std::int64_t count, double first, std::mt19937& random) {
    std::vector<double> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), first);
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
    return values;
}

/// Rows of cumulative lengths, from 0 to where they end. Some sequences may be empty.
std::vector<double> random_lengths(const CaseTensor& tensor, std::mt19937& random) {
    require(
        static_cast<std::int64_t>(tensor.ends.size()) * tensor.shape[-1] == tensor.shape.numel(),
        "each row of cumulative lengths needs its end");
    std::vector<double> lengths;
    for (const std::int64_t end : tensor.ends) {
        const auto first = static_cast<std::ptrdiff_t>(lengths.size());
        lengths.push_back(0);
        for (std::int64_t i = 2; i < tensor.shape[-1]; ++i)
            lengths.push_back(static_cast<double>(random() % static_cast<std::uint64_t>(end + 1)));
        lengths.push_back(static_cast<double>(end));
        std::sort(lengths.begin() + first, lengths.end());
    }
    return lengths;
}

std::vector<double> draw_values(const CaseTensor& tensor, std::mt19937& random) {
    std::vector<double> values(static_cast<std::size_t>(tensor.shape.numel()));
    const auto classes = static_cast<std::uint64_t>(tensor.classes);
    const auto each = [&](auto&& draw) { std::generate(values.begin(), values.end(), draw); };
    const std::string& fill = tensor.fill;
    if (fill == "uniform")
        each([&] { return tensor.min + (tensor.max - tensor.min) * draw_unit(random); });
    else if (fill == "positive")
        each([&] { return 0.1 + 1.9 * draw_unit(random); });
    else if (fill == "equal")
        each([] { return 0.75; });
    else if (fill == "labels")
        each([&] { return static_cast<double>(random() % classes); });
    else if (fill == "indices")
        each([&] {
            return static_cast<double>(random() % (2 * classes)) - static_cast<double>(classes);
        });
    else if (fill == "normal" && is_integer(tensor.dtype))
        each([&] { return std::trunc(8 * draw_normal(random)); });
    else if (fill == "normal")
        each([&] { return draw_normal(random); });
    else
        fail(ErrorKind::invalid_argument, "a tensor cannot be filled with '", fill, "'");
    return values;
}

}  // namespace

double draw_normal(std::mt19937& random) {
    const double radius = std::sqrt(-2 * std::log(draw_unit(random)));
    return radius * std::cos(6.283185307179586 * draw_unit(random));
}

std::vector<std::byte> random_blocks(const GgufType& type, std::size_t bytes, std::mt19937& random,
                                     double size) {
    std::vector<std::byte> data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random() & 255);
    // The integers are up to 16 or 128, and blocks of 256 weights scale them by others of up to 64.
    const double scale = type.elements == 1 ? size
                                            : size / (type.bytes == 34     ? 64
                                                      : type.elements > 32 ? 256
                                                                           : 8);
    const DType stored = type.scales > 0 ? DType::f16 : DType::bf16;
    for (std::size_t block = 0; block + type.bytes <= bytes; block += type.bytes)
        for (std::size_t i = 0; i < std::max<std::size_t>(type.scales, 1); ++i) {
            const double value = draw_normal(random) * scale;
            convert(&value, DType::f64, data.data() + block + type.scale_at + 2 * i, stored, 1);
        }
    return data;
}

HostArray filled_blocks(const GgufType& type, const CaseTensor& tensor, std::mt19937& random) {
    // Halves: zeros, the least and the largest subnormal number, -1, the largest number, NaN.
    constexpr std::uint16_t scales[] = {0, 0x8000, 1, 0x03ff, 0xbc00, 0x7bff, 0x7e00};
    const auto row_bytes = static_cast<std::size_t>(tensor.shape[1]);
    std::vector<std::byte> data =
        random_blocks(type, row_bytes * static_cast<std::size_t>(tensor.shape[0]), random);
    for (std::size_t at = 0; tensor.fill == "edges" && at < data.size(); at += type.bytes)
        for (std::size_t i = 0; i < type.scales; ++i) {
            const std::uint16_t bits = scales[(at / row_bytes + i) % std::size(scales)];
            std::memcpy(data.data() + at + type.scale_at + 2 * i, &bits, sizeof bits);
        }
    HostArray array{tensor.shape, {}, tensor.dtype};
    for (const std::byte byte : data) array.data.push_back(std::to_integer<int>(byte));
    return array;
}

HostArray filled(const CaseTensor& tensor, std::mt19937& random) {
    HostArray array{tensor.shape, {}, tensor.dtype};
    const std::int64_t count = tensor.shape.numel();
    if (tensor.fill == "distinct") {
        array.data = shuffled(count, -std::floor(static_cast<double>(count) / 2), random);
        for (double& value : array.data) value /= 8;
    } else if (tensor.fill == "once") {
        require(tensor.classes >= count, "there are too few classes for none to come twice");
        array.data = shuffled(tensor.classes, 0, random);
        array.data.resize(static_cast<std::size_t>(count));
    } else if (tensor.fill == "lengths") {
        array.data = random_lengths(tensor, random);
    } else {
        array.data = draw_values(tensor, random);
    }
    round_to(array.dtype, array.data);
    return array;
}

}  // namespace dlprim
