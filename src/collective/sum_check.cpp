// SPDX-License-Identifier: MIT
// SumCheck.
#include "collective/sum_check.hpp"

#include "collective/transport.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dlprim {

namespace {

constexpr std::uint64_t block = 4096;

/// From 1 to 2. Of neighbours, and of elements at the same place of two halves, no two are alike.
double weight(std::uint64_t index) {
    return 1 + static_cast<double>(index % block * 1597 % block) / block;
}

}  // namespace

std::vector<double> SumCheck::of(const float* values, std::uint64_t count) {
    std::vector<double> sums;
    for (std::uint64_t begin = 0; begin < count; begin += block) {
        double sum = 0, magnitude = 0;
        for (std::uint64_t i = begin; i < std::min(count, begin + block); ++i) {
            const double value = weight(i) * static_cast<double>(values[i]);
            sum += value;
            magnitude += std::abs(value);
        }
        sums.push_back(sum);
        sums.push_back(magnitude);
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
