// SPDX-License-Identifier: MIT
// matmul.host: products on the host device by host_gemm. A second pass applies bias and epilogue.
// matmul.host_integers multiplies small integers in pairs.
#include "base/text.hpp"
#include "engine/host_activation.hpp"
#include "engine/host_gemm.hpp"
#include "engine/reached_by.hpp"
#include "engine/small_integers.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t finish_block = 256;

/// One for each stage of the epilogue; nothing for a sum.
using Activations = std::vector<std::optional<HostActivation>>;

Activations activations_of(const Epilogue& epilogue) {
    Activations result;
    for (const EpilogueStage& stage : epilogue) {
        result.emplace_back();
        if (stage.kind != EpilogueStage::Kind::add)
            result.back().emplace(stage.activation, stage.alpha, stage.beta);
    }
    return result;
}

/// Applies bias and epilogue to elements [begin, end) of C, in blocks so that intermediate values
/// stay in the cache.
void finish(const Activations& stages, const Gemm& g, const float* bias, const float* residual,
            float* c, std::int64_t begin, std::int64_t end) {
    if (bias) {
        std::int64_t column = begin % g.n;
        for (std::int64_t i = begin; i < end; ++i) {
            c[i] += bias[column];
            if (++column == g.n) column = 0;
        }
    }
    for (const auto& activation : stages) {
        if (activation)
            activation->apply(c + begin, end - begin);
        else
            for (std::int64_t i = begin; i < end; ++i) c[i] += residual[i];
    }
}

class Host : public MatMulEngine {
  public:
    explicit Host(const std::string& op, std::string_view way = "host")
        : MatMulEngine(op, way, true) {}

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 0.6);
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const bool integers = problem.attrs.has(small_integers_attr);
        const bool packed = problem.inputs[1].layout.kind == Layout::Kind::packed;
        return std::make_unique<HostLaunch>([g, stages = activations_of(problem.epilogue), integers,
                                             packed](HostPool& pool,
                                                     std::span<const BufferRef> operands) {
            auto at = [&](int i) {
                return reinterpret_cast<float*>(operands[static_cast<std::size_t>(i)].host());
            };
            const float *a = at(g.a), *b = at(g.b);
            float* c = at(g.c);
            if (g.m == 0 || g.n == 0 || g.batches == 0) return;
            const std::int64_t lda = g.transpose_a ? g.m : g.k, ldb = g.transpose_b ? g.k : g.n;
            // One call computes the innermost batch dimension, and a loop the others.
            const Gemm::BatchDim inner = g.batch.empty() ? Gemm::BatchDim{1, 0, 0} : g.batch.back();
            const std::int64_t outer = g.batches / inner.size;
            for (std::int64_t o = 0; o < outer; ++o) {
                std::int64_t rest = o, offset_a = 0, offset_b = 0;
                for (std::size_t d = g.batch.size(); d-- > 1;) {
                    const Gemm::BatchDim& dim = g.batch[d - 1];
                    offset_a += rest % dim.size * dim.a;
                    offset_b += rest % dim.size * dim.b;
                    rest /= dim.size;
                }
                GemmProblem product{inner.size, g.m, g.n, g.k};
                product.a = {a + offset_a, lda, inner.a, g.transpose_a};
                product.b = {b + offset_b, ldb, inner.b, g.transpose_b, packed};
                product.c = c + o * inner.size * g.m * g.n;
                product.ldc = g.n;
                product.stride_c = g.m * g.n;
                product.alpha = g.alpha;
                product.small_integers = integers;
                host_gemm(pool, product);
            }
            if (g.bias < 0 && stages.empty()) return;
            const float* bias = g.bias >= 0 ? at(g.bias) : nullptr;
            const float* residual = g.residual >= 0 ? at(g.residual) : nullptr;
            const std::int64_t count = g.batches * g.m * g.n;
            pool.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; i += finish_block)
                    finish(stages, g, bias, residual, c, i, std::min(end, i + finish_block));
            });
        });
    }
};

/// The same for small integers, which are multiplied in pairs. A constant second factor is packed
/// once.
class HostIntegers : public Host, public ReachedBy {
  public:
    explicit HostIntegers(const std::string& op) : Host(op, "host_integers") {}

    std::string_view reached_by() const override { return reached_by_marks; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.attrs.has(small_integers_attr))
            return Verdict::no("it multiplies small integers, which nothing says the factors are");
        return Host::is_applicable(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 1.2);
    }
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        const Gemm g = gemm_of(problem);
        if (g.constant_b && g.batches == 1) {
            const PairPanels panels = panels_of(g);
            choice.inputs[1] = Layout::packed(cat("host_pairs:b", panels.count, 'x', panels.k, 'w',
                                                  panels.width, g.transpose_b ? 't' : 'n'),
                                              static_cast<std::uint64_t>(panels.floats()) * 4);
        }
        return {choice};
    }
    std::unique_ptr<Launch> build_packing(ContextImpl&, const Problem& problem, const Tuning&,
                                          int) const override {
        return std::make_unique<HostLaunch>(
            [g = gemm_of(problem)](HostPool& pool, std::span<const BufferRef> operands) {
                const GemmMatrix columns(reinterpret_cast<const float*>(operands[0].host()),
                                         g.transpose_b ? g.k : 1, g.transpose_b ? 1 : g.n, 0);
                pack_pairs(pool, panels_of(g), columns,
                           reinterpret_cast<float*>(operands[1].host()));
            });
    }

  private:
    static PairPanels panels_of(const Gemm& g) { return {GemmSide::b, 1, g.m, g.n, g.k}; }
};

}  // namespace

void add_host(EngineRegistry& engines, const std::string& op) {
    // Only products that mark_small_integers() finds are of small integers.
    if (op == "MatMul") engines.add(std::make_unique<HostIntegers>(op));
    engines.add(std::make_unique<Host>(op));
}

}  // namespace dlprim::matmul
