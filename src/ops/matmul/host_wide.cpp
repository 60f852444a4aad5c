// SPDX-License-Identifier: MIT
// matmul.host_wide and inner_product.host_wide: products of doubles and of integers on the host's
// threads, which take rows.
#include "engine/host_element.hpp"
#include "ops/matmul/wide.hpp"

#include <type_traits>
#include <vector>

namespace dlprim::matmul {

namespace {

/// Sums of integers wrap, so they have no sign.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;

/// The offsets of a batch's matrices in A and B, in elements.
std::pair<std::int64_t, std::int64_t> offsets(const Gemm& g, std::int64_t batch) {
    std::int64_t a = 0, b = 0;
    for (std::size_t d = g.batch.size(); d-- > 0;) {
        a += batch % g.batch[d].size * g.batch[d].a;
        b += batch % g.batch[d].size * g.batch[d].b;
        batch /= g.batch[d].size;
    }
    return {a, b};
}

/// One row of a product. `a` and `b` begin at the row and at the matrix.
template <typename T>
void multiply(const Gemm& g, const T* a, const T* b, std::vector<SumOf<T>>& sums) {
    using Sum = SumOf<T>;
    sums.assign(static_cast<std::size_t>(g.n), Sum{0});
    const std::int64_t a_k = g.transpose_a ? g.m : 1;
    if (g.transpose_b) {
        for (std::int64_t j = 0; j < g.n; ++j) {
            Sum sum{0};
            for (std::int64_t p = 0; p < g.k; ++p)
                sum += static_cast<Sum>(a[p * a_k]) * static_cast<Sum>(b[j * g.k + p]);
            sums[static_cast<std::size_t>(j)] = sum;
        }
        return;
    }
    for (std::int64_t p = 0; p < g.k; ++p) {
        const Sum left = static_cast<Sum>(a[p * a_k]);
        for (std::int64_t j = 0; j < g.n; ++j)
            sums[static_cast<std::size_t>(j)] += left * static_cast<Sum>(b[p * g.n + j]);
    }
}

template <typename T>
std::unique_ptr<Launch> launch_of(const Problem& problem) {
    using Sum = SumOf<T>;
    const Gemm g = gemm_of(problem);
    Sum alpha;
    if constexpr (std::is_floating_point_v<T>)
        alpha = alpha_of(problem);
    else
        alpha = static_cast<Sum>(static_cast<std::int64_t>(alpha_of(problem)));
    return std::make_unique<HostLaunch>(
        [g, alpha](HostPool& pool, std::span<const BufferRef> operands) {
            const auto at = [&](int i) {
                return i < 0 ? nullptr
                             : reinterpret_cast<T*>(operands[static_cast<std::size_t>(i)].host());
            };
            const T *a = at(g.a), *b = at(g.b), *bias = at(g.bias), *residual = at(g.residual);
            T* c = at(g.c);
            pool.parallel_for(g.batches * g.m, 1, [&](std::int64_t begin, std::int64_t end) {
                std::vector<Sum> sums;
                for (std::int64_t line = begin; line < end; ++line) {
                    const auto [from_a, from_b] = offsets(g, line / g.m);
                    const std::int64_t row = line % g.m;
                    multiply(g, a + from_a + row * (g.transpose_a ? 1 : g.k), b + from_b, sums);
                    for (std::int64_t j = 0; j < g.n; ++j) {
                        Sum v = alpha * sums[static_cast<std::size_t>(j)];
                        if (bias != nullptr) v += static_cast<Sum>(bias[j]);
                        if (residual != nullptr) v += static_cast<Sum>(residual[line * g.n + j]);
                        c[line * g.n + j] = static_cast<T>(v);
                    }
                }
            });
        });
}

class HostWide : public MatMulEngine {
  public:
    explicit HostWide(const std::string& op) : MatMulEngine(op, "host_wide", true) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return check_wide(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 0.1);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return with_wide_type(problem.inputs[0].dtype,
                              [&]<typename T>(T) { return launch_of<T>(problem); });
    }
};

}  // namespace

void add_host_wide(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<HostWide>(op));
}

}  // namespace dlprim::matmul
