// SPDX-License-Identifier: MIT
// SumCheck.
#include "collective/processes/sum_check.hpp"

#include "collective/processes/transport.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace dlprim {

namespace {

constexpr std::uint64_t block = 4096;

/// Weights of a block's elements, from 1 to 2. Of neighbours, and of elements at the same place of
/// two halves, no two are alike.
const std::array<double, block>& weights() {
    static const std::array<double, block> all = [] {
        std::array<double, block> weights{};
        for (std::uint64_t i = 0; i < block; ++i)
            weights[i] = 1 + static_cast<double>(i * 1597 % block) / block;
        return weights;
    }();
    return all;
}

}  // namespace

std::vector<double> SumCheck::of(const float* values, std::uint64_t count) {
    // Several sums at once, so that compilers use vectors.
    constexpr std::uint64_t lanes = 8;
    const std::array<double, block>& weight = weights();
    std::vector<double> sums;
    for (std::uint64_t begin = 0; begin < count; begin += block) {
        std::array<double, lanes> sum{}, magnitude{};
        const auto add = [&](std::uint64_t i, std::uint64_t lane) {
            const double value = weight[i] * static_cast<double>(values[begin + i]);
            sum[lane] += value;
            magnitude[lane] += std::abs(value);
        };
        const std::uint64_t size = std::min(count - begin, block);
        std::uint64_t i = 0;
        for (; i + lanes <= size; i += lanes)
            for (std::uint64_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
        for (; i < size; ++i) add(i, i % lanes);
        sums.push_back(std::accumulate(sum.begin(), sum.end(), 0.0));
        sums.push_back(std::accumulate(magnitude.begin(), magnitude.end(), 0.0));
    }
    return sums;
}

bool SumCheck::agrees(const float* sums, std::uint64_t count, const std::vector<double>& all) {
    const std::vector<double> result = of(sums, count);
    const std::size_t processes = result.empty() ? 0 : all.size() / result.size();
    constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
    for (std::size_t at = 0; at < result.size(); at += 2) {
        double sum = 0, magnitude = 0;
        for (std::size_t process = 0; process < processes; ++process) {
            sum += all[process * result.size() + at];
            magnitude += all[process * result.size() + at + 1];
        }
        if (!(magnitude < largest)) continue;
        // Each addition rounds by at most 2^-24 of a partial sum. Doubles round by much less. Where
        // a processor takes the smallest numbers for zero, that is an error of its own.
        const double bound =
            static_cast<double>(processes) * (0x1.01p-24 * magnitude + block * 0x1p-125);
        if (!(std::abs(result[at] - sum) <= bound)) return false;
    }
    return true;
}

std::uint64_t SumCheck::digest(const float* sums, std::uint64_t count) {
    std::array<float, block> part;
    std::uint64_t digest = 0;
    for (std::uint64_t begin = 0; begin < count; begin += block) {
        const std::uint64_t size = std::min(block, count - begin);
        std::transform(sums + begin, sums + begin + size, part.begin(), [](float value) {
            return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
        });
        digest = digest_of(part.data(), size * sizeof(float), digest);
    }
    return digest;
}

}  // namespace dlprim
