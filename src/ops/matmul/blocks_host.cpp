// SPDX-License-Identifier: MIT
// inner_product.host_blocks: weights in GGUF's blocks on the host. One row of inputs is multiplied
// as the weights are unpacked, a few with a row of unpacked weights each, and more by host_gemm().
// normed_product.host_blocks computes the norm before that and the gate behind it, so that engines
// of devices are compared with it.
#include "engine/epilogue.hpp"
#include "engine/host_blocks.hpp"
#include "engine/host_gemm_kernels.hpp"
#include "engine/reached_by.hpp"
#include "ops/matmul/blocks.hpp"
#include "ops/matmul/normed.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t few_rows = 8;

/// Products of a few rows of A with all rows of weights.
void multiply_few(HostPool& pool, const Gemm& g, const GgufType& type, const float* a,
                  const std::byte* b, std::int64_t row_bytes, float* c) {
    const HostBlockKernels& kernels = host_block_kernels(type);
    const auto dot = host_gemm_kernels().dot;
    const std::int64_t grain = std::max<std::int64_t>(1, 65536 / (g.k * g.m));
    pool.parallel_for(g.n, grain, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> unpacked(static_cast<std::size_t>(g.m > 1 ? g.k : 0));
        for (std::int64_t column = begin; column < end; ++column) {
            const std::byte* blocks = b + column * row_bytes;
            if (g.m == 1) {
                c[column] = kernels.dot(g.k, a, blocks);
                continue;
            }
            kernels.unpack(g.k, blocks, unpacked.data());
            for (std::int64_t row = 0; row < g.m; ++row)
                c[row * g.n + column] = dot(g.k, a + row * g.k, unpacked.data());
        }
    });
}

void multiply(HostPool& pool, const Gemm& g, const GgufType& type, const float* a,
              const std::byte* b, std::int64_t row_bytes, float* c) {
    if (g.m <= few_rows)
        multiply_few(pool, g, type, a, b, row_bytes, c);
    else
        host_gemm(pool, 1, g.m, g.n, g.k, GemmMatrix(a, g.k, 1, 0), GemmBlocks(type, b, row_bytes),
                  GemmMatrixSink(c, g.n, 0, 1, 0));
}

class BlocksHost : public BlockEngine {
  public:
    explicit BlocksHost(std::string_view op = "InnerProduct")
        : BlockEngine("host_blocks", op, true) {}

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [g = gemm_of(problem), &type = type_of(problem), normed = Normed(problem),
             epilogue = problem.epilogue, row_bytes = problem.inputs[1].shape[1]](
                HostPool& pool, std::span<const BufferRef> operands) {
                const auto at = [&](int i) { return operands[static_cast<std::size_t>(i)].host(); };
                const auto floats = [&](int i) { return reinterpret_cast<float*>(at(i)); };
                const float* a = floats(g.a);
                float* c = floats(g.c);
                std::vector<float> rows;
                if (normed) {
                    rows.resize(static_cast<std::size_t>(g.m * g.k));
                    for (std::int64_t row = 0; row < g.m; ++row)
                        normalize_row(a + row * g.k, floats(normed.scale), g.k, normed.eps,
                                      rows.data() + row * g.k);
                    a = rows.data();
                }
                multiply(pool, g, type, a, at(g.b), row_bytes, c);
                std::vector<float> passed;  // what a gate lets through
                if (normed.other >= 0) {
                    passed.resize(static_cast<std::size_t>(g.m * g.n));
                    multiply(pool, g, type, a, at(normed.other), row_bytes, passed.data());
                }
                const HostEpilogue finish(passed.empty() ? epilogue : normed.gate, operands);
                if (g.bias < 0 && finish.empty()) return;
                const float* bias = g.bias < 0 ? nullptr : floats(g.bias);
                pool.parallel_for(g.m, 1 + 4096 / g.n, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                        float* line = c + row * g.n;
                        for (std::int64_t j = 0; bias && j < g.n; ++j) line[j] += bias[j];
                        finish.apply(line, row * g.n, g.n);
                        const float* factors = passed.empty() ? nullptr : passed.data() + row * g.n;
                        for (std::int64_t j = 0; factors && j < g.n; ++j) line[j] *= factors[j];
                    }
                });
            });
    }
};

class NormedHost final : public BlocksHost, public ReachedBy {
  public:
    NormedHost() : BlocksHost(normed_type) {}
    std::string_view reached_by() const override { return reached_by_norms; }
};

}  // namespace

void add_blocks_host(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksHost>());
    engines.add(std::make_unique<NormedHost>());
}

}  // namespace dlprim::matmul
