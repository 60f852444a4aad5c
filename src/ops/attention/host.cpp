// SPDX-License-Identifier: MIT
// attention.host: attention on the host's threads, a row of scores at a time, summed in double. It
// is what checks of other engines compare with; networks on the host are faster as matrix products.
#include "ops/attention/host_heads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dlprim::attention {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Operands {
    const float *q, *k, *v;
    const std::byte* mask;  ///< nullptr: none
    float *y, *lse;
};

/// Computes row `row` of head `head`, whose operands are given. `weights`: room for all positions.
void compute_row(const Heads& heads, const HostHeads& of, const Operands& x, std::int64_t head,
                 std::int64_t row, double* weights, double* sums) {
    const float* const q = x.q + row * heads.q_row;
    const auto [begin, end] = of.seen(row);
    double most = -infinity;
    for (std::int64_t s = begin; s < end; ++s) {
        double score = 0;
        for (std::int64_t d = 0; d < heads.depth; ++d)
            score += static_cast<double>(q[d]) * static_cast<double>(x.k[s * heads.k_row + d]);
        weights[s] = masked_score(heads, x.mask, row, s, capped(heads, score * heads.scale).score);
        most = std::fmax(most, weights[s]);
    }
    const double base = most == -infinity ? 0 : most;
    double sum = 0;
    std::fill_n(sums, heads.features, 0.0);
    for (std::int64_t s = begin; s < end; ++s) {
        const double weight = std::exp(weights[s] - base);
        sum += weight;
        const double kept = weight == 0 ? 0 : weight * of.factor(head, row, s);
        if (kept == 0) continue;
        for (std::int64_t e = 0; e < heads.features; ++e)
            sums[e] += kept * static_cast<double>(x.v[s * heads.v_row + e]);
    }
    for (std::int64_t e = 0; e < heads.features; ++e)
        x.y[row * heads.y_row + e] = static_cast<float>(sum == 0 ? 0 : sums[e] / sum);
    x.lse[row] = static_cast<float>(most + std::log(sum));
}

class Host : public Engine {
  public:
    Host() : Engine("attention.host", forward_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_heads(problem, std::numeric_limits<std::int32_t>::max(), false);
    }
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, heads_of(problem).flops(), 0.02);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [known = HostProblem(problem)](HostPool& pool, std::span<const BufferRef> operands) {
                const Heads& heads = known.heads;
                const HostHeads of(known, operands);
                pool.parallel_for(
                    heads.count * heads.length, 1, [&](std::int64_t begin, std::int64_t end) {
                        std::vector<double> weights(static_cast<std::size_t>(heads.positions)),
                            sums(static_cast<std::size_t>(heads.features));
                        for (std::int64_t line = begin; line < end; ++line) {
                            const std::int64_t head = line / heads.length;
                            const Operands x{of.floats(0) + of.start(heads.q, head),
                                             of.floats(1) + of.start(heads.k, head),
                                             of.floats(2) + of.start(heads.v, head),
                                             of.mask(head),
                                             of.floats(heads.results) + of.start(heads.y, head),
                                             of.floats(heads.results + 1) + head * heads.length};
                            compute_row(heads, of, x, head, line % heads.length, weights.data(),
                                        sums.data());
                        }
                    });
            });
    }
};

}  // namespace

void add_host(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::attention
