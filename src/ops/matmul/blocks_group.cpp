// SPDX-License-Identifier: MIT
// inner_product.blocks_group: weights in GGUF's blocks on GPUs for many rows of inputs: a
// work-group makes a tile of the result, for which it unpacks weights to local memory.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/blocks.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks_group.cl";

std::int64_t side_of(const Traits& device) {
    return device.max_work_group >= 256 ? 64 : 32;
}

class BlocksGroup : public BlockEngine {
  public:
    BlocksGroup() : BlockEngine("blocks_group") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.wide_vectors)
            return Verdict::no("it is made for GPUs; on CPUs use inner_product.blocks");
        const std::uint64_t local = 256 * static_cast<std::uint64_t>(side_of(device) + 1);
        if (device.max_work_group < 128 || device.local_bytes < local)
            return Verdict::no(cat("it needs work-groups of 128 work-items and ", local,
                                   " bytes of local memory"));
        return BlockEngine::is_applicable(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t side = side_of(device);
        const double flops = 2.0 * static_cast<double>(ceil_div(g.m, side) * ceil_div(g.n, side)) *
                             static_cast<double>(side * side * g.k);
        return roofline_seconds(device, problem, flops, 0.25, 0.5);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t side = side_of(context.traits());
        const std::string options =
            cat(block_options(context.traits(), type_of(problem)), define("SIDE", side));
        const std::int64_t group = side / 4 * (side / 4);
        NDRange range;
        range.dims = 2;
        range.local = {static_cast<std::size_t>(group), 1, 1};
        range.global = {static_cast<std::size_t>(ceil_div(g.n, side) * group),
                        static_cast<std::size_t>(ceil_div(g.m, side)), 1};
        KernelCall call(
            context.build({source, epilogue_defines(problem, g) + kernel_source(source), options}),
            "matmul_blocks_tile", range);
        bind(call, problem, g).size("m", g.m);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_blocks_group(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksGroup>());
}

}  // namespace dlprim::matmul
