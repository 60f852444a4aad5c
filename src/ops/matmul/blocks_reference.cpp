// SPDX-License-Identifier: MIT
// inner_product.blocks_reference: the engine for weights in GGUF's blocks that always applies on
// OpenCL devices.
#include "ops/matmul/blocks.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks_reference.cl";

class BlocksReference : public BlockEngine {
  public:
    BlocksReference() : BlockEngine("blocks_reference") {}

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        return std::max(
            roofline_seconds(device, problem, g.flops(), 0.01, 0.1),
            serial_loop_seconds(device, static_cast<double>(g.k)) + device.launch_us * 1e-6);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t count = g.m * g.n;
        KernelCall call(context.build({source, epilogue_defines(problem, g) + kernel_source(source),
                                       block_options(context.traits(), type_of(problem))}),
                        "matmul_blocks_reference", line_range(context.traits(), count));
        bind(call, problem, g).scalar("count", count);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_blocks_reference(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksReference>());
}

}  // namespace dlprim::matmul
