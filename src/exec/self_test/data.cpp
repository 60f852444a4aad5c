// SPDX-License-Identifier: MIT
// Values of the self-test's tensors.
#include "base/text.hpp"
#include "exec/self_test/cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>

namespace dlprim {

namespace {

constexpr double two_pi = 6.283185307179586;

/// A number between 0 and 1 by our own arithmetic, because the standard distributions differ among
/// compilers.
double unit(std::mt19937& random) {
    return (static_cast<double>(random()) + 0.5) / 4294967296.0;
}

void shuffle(std::vector<double>& values, std::mt19937& random) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

double value_of(const SelfTestTensor& tensor, std::string_view fill, std::mt19937& random) {
    const auto classes = static_cast<std::uint64_t>(tensor.classes);
    if (fill == "uniform") return tensor.min + (tensor.max - tensor.min) * unit(random);
    if (fill == "positive") return 0.1 + 1.9 * unit(random);
    if (fill == "labels") return static_cast<double>(random() % classes);
    if (fill == "indices")
        return static_cast<double>(random() % (2 * classes)) - static_cast<double>(classes);
    require(fill == "normal", "the self-test has no values of the kind '", fill, "'");
    const double radius = std::sqrt(-2 * std::log(unit(random)));
    const double value = radius * std::cos(two_pi * unit(random));
    return is_float(tensor.dtype) ? value : std::trunc(8 * value);
}

}  // namespace

HostArray self_test_data(const SelfTestTensor& tensor, std::mt19937& random) {
    const std::string_view fill = tensor.fill;
    HostArray array{tensor.shape, {}, tensor.dtype};
    array.data.resize(static_cast<std::size_t>(tensor.shape.numel()));
    if (fill == "distinct") {
        std::iota(array.data.begin(), array.data.end(),
                  -std::floor(static_cast<double>(array.data.size()) / 2));
        shuffle(array.data, random);
        for (double& value : array.data) value /= 8;
    } else if (fill == "once") {
        std::vector<double> all(static_cast<std::size_t>(tensor.classes));
        std::iota(all.begin(), all.end(), 0);
        shuffle(all, random);
        require(all.size() >= array.data.size(), "the self-test has too few classes");
        std::copy_n(all.begin(), array.data.size(), array.data.begin());
    } else {
        for (double& value : array.data) value = value_of(tensor, fill, random);
    }
    // Round them to what the type can hold.
    std::vector<std::byte> bytes(array.data.size() * size_of(array.dtype));
    convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
    convert(bytes.data(), array.dtype, array.data.data(), DType::f64, array.data.size());
    return array;
}

}  // namespace dlprim
