// SPDX-License-Identifier: MIT
// attention.host_backward: the gradients of attention on the host's threads, a head at a time,
// summed in double. It is what checks of other engines compare with.
#include "base/text.hpp"
#include "ops/attention/host_heads.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace dlprim::attention {

namespace {

/// The operands of one head.
struct Head {
    const float *q, *k, *v, *lse, *delta, *dy;
    const std::byte* mask;
    float *dq, *dk, *dv;
};

using Sums = std::vector<double>;

Sums sums_of(std::int64_t rows, std::int64_t columns) {
    return Sums(static_cast<std::size_t>(rows * columns));
}

/// Stores rows of `columns` sums, which begin `step` elements apart.
void store(const Sums& sums, float* to, std::int64_t columns, std::int64_t step) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        to[at / columns * step + at % columns] = static_cast<float>(sums[i]);
    }
}

double dot(const float* a, const float* b, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

void add(double* sums, double factor, const float* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * static_cast<double>(x[i]);
}

void compute_head(const Heads& heads, const HostHeads& of, std::int64_t head, const Head& x) {
    const std::int64_t depth = heads.depth, features = heads.features;
    Sums dq = sums_of(heads.length, depth), dk = sums_of(heads.positions, depth),
         dv = sums_of(heads.positions, features);
    for (std::int64_t row = 0; row < heads.length; ++row) {
        const double lse = static_cast<double>(x.lse[row]);
        // A row without positions has no weights.
        const double base = std::isinf(lse) && lse < 0 ? -lse : lse;
        const float *const q = x.q + row * heads.q_row, *const dy = x.dy + row * heads.y_row;
        const auto [begin, end] = of.seen(row);
        for (std::int64_t s = begin; s < end; ++s) {
            const float* const k = x.k + s * heads.k_row;
            const auto [score, slope] = capped(heads, dot(q, k, depth) * heads.scale);
            const double weight = std::exp(masked_score(heads, x.mask, row, s, score) - base);
            if (weight == 0) continue;
            const double kept = of.factor(head, row, s);
            const double ds = weight * (kept * dot(dy, x.v + s * heads.v_row, features) -
                                        static_cast<double>(x.delta[row]));
            add(&dv[static_cast<std::size_t>(s * features)], weight * kept, dy, features);
            const double factor = ds * slope * heads.scale;
            add(&dq[static_cast<std::size_t>(row * depth)], factor, k, depth);
            add(&dk[static_cast<std::size_t>(s * depth)], factor, q, depth);
        }
    }
    store(dq, x.dq, depth, heads.dq_row);
    store(dk, x.dk, depth, heads.dk_row);
    store(dv, x.dv, features, heads.dv_row);
}

class HostBackward : public Engine {
  public:
    HostBackward() : Engine("attention.host_backward", backward_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_heads(problem, std::numeric_limits<std::int32_t>::max(), false);
    }
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return heads_layouts(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 2.5 * heads_of(problem).flops(), 0.02);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [known = HostProblem(problem)](HostPool& pool, std::span<const BufferRef> operands) {
                const Heads& heads = known.heads;
                const HostHeads of(known, operands);
                pool.parallel_for(heads.count, 1, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t head = begin; head < end; ++head) {
                        const std::int64_t row = head * heads.length;
                        const auto at = [&](int i, const Heads::Strides& strides) {
                            return of.floats(i) + of.start(strides, head);
                        };
                        compute_head(
                            heads, of, head,
                            {at(0, heads.q), at(1, heads.k), at(2, heads.v), of.floats(3) + row,
                             of.floats(4) + row, at(5, heads.y), of.mask(head),
                             at(heads.results, heads.dq), at(heads.results + 1, heads.dk),
                             at(heads.results + 2, heads.dv)});
                    }
                });
            });
    }
};

}  // namespace

void add_host_backward(EngineRegistry& engines) {
    engines.add(std::make_unique<HostBackward>());
}

}  // namespace dlprim::attention
