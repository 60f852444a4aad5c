// SPDX-License-Identifier: MIT
// inner_product.host_blocks: weights in GGUF's blocks on the host. One row of inputs is multiplied
// as the weights are unpacked, a few with a row of unpacked weights each, and more by host_gemm().
#include "engine/epilogue.hpp"
#include "engine/host_blocks.hpp"
#include "engine/host_gemm_kernels.hpp"
#include "ops/matmul/blocks.hpp"

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

class BlocksHost : public BlockEngine {
  public:
    BlocksHost() : BlockEngine("host_blocks", true) {}

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, gemm_of(problem).flops(), 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>([g = gemm_of(problem), &type = type_of(problem),
                                             epilogue = problem.epilogue,
                                             row_bytes = problem.inputs[1].shape[1]](
                                                HostPool& pool,
                                                std::span<const BufferRef> operands) {
            const auto at = [&](int i) { return operands[static_cast<std::size_t>(i)].host(); };
            const auto* a = reinterpret_cast<const float*>(at(g.a));
            auto* c = reinterpret_cast<float*>(at(g.c));
            if (g.m <= few_rows)
                multiply_few(pool, g, type, a, at(g.b), row_bytes, c);
            else
                host_gemm(pool, 1, g.m, g.n, g.k, GemmMatrix(a, g.k, 1, 0),
                          GemmBlocks(type, at(g.b), row_bytes), GemmMatrixSink(c, g.n, 0, 1, 0));
            const HostEpilogue finish(epilogue, operands);
            if (g.bias < 0 && finish.empty()) return;
            const float* bias = g.bias < 0 ? nullptr : reinterpret_cast<const float*>(at(g.bias));
            pool.parallel_for(g.m, 1 + 4096 / g.n, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row) {
                    float* line = c + row * g.n;
                    for (std::int64_t j = 0; bias && j < g.n; ++j) line[j] += bias[j];
                    finish.apply(line, row * g.n, g.n);
                }
            });
        });
    }
};

}  // namespace

void add_blocks_host(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksHost>());
}

}  // namespace dlprim::matmul
