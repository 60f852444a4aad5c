// SPDX-License-Identifier: MIT
// Fills tensors with random values.
#include "check/fill.hpp"

#include "base/text.hpp"
#include "check/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
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

double draw_value(const CaseTensor& tensor, std::mt19937& random) {
    const std::string& fill = tensor.fill;
    const auto classes = static_cast<std::uint64_t>(tensor.classes);
    if (fill == "uniform") return tensor.min + (tensor.max - tensor.min) * draw_unit(random);
    if (fill == "positive") return 0.1 + 1.9 * draw_unit(random);
    if (fill == "equal") return 0.75;
    if (fill == "labels") return static_cast<double>(random() % classes);
    if (fill == "indices")
        return static_cast<double>(random() % (2 * classes)) - static_cast<double>(classes);
    require(fill == "normal", "a tensor cannot be filled with '", fill, "'");
    const double value = draw_normal(random);
    return is_integer(tensor.dtype) ? std::trunc(8 * value) : value;
}

}  // namespace

double draw_normal(std::mt19937& random) {
    const double radius = std::sqrt(-2 * std::log(draw_unit(random)));
    return radius * std::cos(6.283185307179586 * draw_unit(random));
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
    } else {
        array.data.resize(static_cast<std::size_t>(count));
        for (double& value : array.data) value = draw_value(tensor, random);
    }
    round_to(array.dtype, array.data);
    return array;
}

}  // namespace dlprim
