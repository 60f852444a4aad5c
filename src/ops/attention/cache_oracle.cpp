// SPDX-License-Identifier: MIT
// CacheUpdate and CachedAttention in double, element by element.
#include "ops/attention/cache.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dlprim::attention {

namespace {

std::size_t at(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

}  // namespace

void update_oracle(const CacheSizes& sizes, OracleCall& call) {
    HostArray& y = call.outputs[0];
    y = call.inputs[0];
    std::vector<HostArray>& in = call.inputs;
    const std::int64_t half = sizes.turned / 2;
    // Turns the head that begins at `head`.
    const auto turn = [&](std::vector<double>& x, std::int64_t head, std::int64_t position) {
        for (std::int64_t pair = 0; pair < half; ++pair) {
            const std::int64_t row = std::min(position, sizes.table_rows - 1) * half + pair;
            const double c = in[6].data[at(row)], s = in[7].data[at(row)];
            double& a = x[at(head + (sizes.interleaved ? 2 * pair : pair))];
            double& b = x[at(head + (sizes.interleaved ? 2 * pair + 1 : pair + half))];
            const double turned = a * c - b * s;
            b = a * s + b * c;
            a = turned;
        }
    };
    for (std::int64_t token = 0; token < sizes.batch * sizes.length; ++token) {
        const std::int64_t sequence = token / sizes.length;
        const auto cache = static_cast<std::int64_t>(in[5].data[at(2 * sequence)]);
        const std::int64_t position =
            static_cast<std::int64_t>(in[5].data[at(2 * sequence + 1)]) + token % sizes.length;
        for (std::int64_t h = 0; h < sizes.heads; ++h)
            turn(y.data, (token * sizes.heads + h) * sizes.depth, position);
        if (position >= sizes.capacity) continue;
        for (std::int64_t h = 0; h < sizes.key_heads; ++h) {
            const std::int64_t from = token * sizes.key_heads + h,
                               to = (cache * sizes.key_heads + h) * sizes.capacity + position;
            std::copy_n(in[1].data.begin() + from * sizes.depth, sizes.depth,
                        in[3].data.begin() + to * sizes.depth);
            turn(in[3].data, to * sizes.depth, position);
            std::copy_n(in[2].data.begin() + from * sizes.features, sizes.features,
                        in[4].data.begin() + to * sizes.features);
        }
    }
}

void cached_oracle(const CacheSizes& sizes, OracleCall& call) {
    const std::vector<HostArray>& in = call.inputs;
    HostArray& y = call.outputs[0];
    y.shape = in[0].shape.with(3, sizes.features);
    y.data.assign(at(y.shape.numel()), 0.0);
    for (std::int64_t row = 0; row < sizes.batch * sizes.length * sizes.heads; ++row) {
        const std::int64_t token = row / sizes.heads, sequence = token / sizes.length;
        const auto cache = static_cast<std::int64_t>(in[3].data[at(2 * sequence)]);
        const std::int64_t own =
            static_cast<std::int64_t>(in[3].data[at(2 * sequence + 1)]) + token % sizes.length;
        const std::int64_t first =
            sizes.window > 0 ? std::max<std::int64_t>(own - sizes.window + 1, 0) : 0;
        const std::int64_t head =
            (cache * sizes.key_heads + row % sizes.heads / sizes.group()) * sizes.capacity;
        std::vector<double> weights;
        for (std::int64_t s = first; s <= std::min(own, sizes.capacity - 1); ++s) {
            double score = 0;
            for (std::int64_t d = 0; d < sizes.depth; ++d)
                score += in[0].data[at(row * sizes.depth + d)] *
                         in[1].data[at((head + s) * sizes.depth + d)];
            score *= sizes.scale;
            if (sizes.softcap > 0) score = sizes.softcap * std::tanh(score / sizes.softcap);
            weights.push_back(score);
        }
        if (weights.empty()) continue;
        const double most = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - most);
        for (std::size_t s = 0; s < weights.size(); ++s)
            for (std::int64_t e = 0; e < sizes.features; ++e)
                y.data[at(row * sizes.features + e)] +=
                    weights[s] / sum *
                    in[2].data[at((head + first + static_cast<std::int64_t>(s)) * sizes.features +
                                  e)];
    }
}

}  // namespace dlprim::attention
