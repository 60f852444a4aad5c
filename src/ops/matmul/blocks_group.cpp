// SPDX-License-Identifier: MIT
// inner_product.blocks_group: weights in GGUF's blocks on GPUs. Work-items share rows of weights
// where there are few rows of inputs, and tiles of the result where there are many.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/blocks.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks_group.cl";
constexpr std::int64_t line = 32, columns = 4, few_rows = 8;

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
        const double flops =
            2.0 * static_cast<double>(rows_of(device, g) * ceil_div(g.n, columns) * columns * g.k);
        return roofline_seconds(device, problem, flops, is_few(g) ? 0.1 : 0.25, 0.5);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t side = side_of(context.traits());
        // Only a few values, so that kernels are shared.
        const std::int64_t rows = g.m <= 1 ? 1 : g.m <= 2 ? 2 : g.m <= 4 ? 4 : few_rows;
        const std::string options =
            cat(block_options(context.traits(), type_of(problem)), define("LINE", line),
                define("COLUMNS", columns), define("MR", rows), define("SIDE", side));
        NDRange range;
        range.dims = 2;
        if (is_few(g)) {
            range.local = {line, columns, 1};
            range.global = {static_cast<std::size_t>(ceil_div(g.n, columns) * line),
                            static_cast<std::size_t>(ceil_div(g.m, rows) * columns), 1};
        } else {
            const std::int64_t group = side / 4 * (side / 4);
            range.local = {static_cast<std::size_t>(group), 1, 1};
            range.global = {static_cast<std::size_t>(ceil_div(g.n, side) * group),
                            static_cast<std::size_t>(ceil_div(g.m, side)), 1};
        }
        KernelCall call(
            context.build({source, epilogue_defines(problem, g) + kernel_source(source), options}),
            is_few(g) ? "matmul_blocks_few" : "matmul_blocks_tile", range);
        bind(call, problem, g).size("m", g.m);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    static bool is_few(const Gemm& g) { return g.m <= 2 * few_rows; }
    static std::int64_t rows_of(const Traits& device, const Gemm& g) {
        return is_few(g) ? g.m : ceil_div(g.m, side_of(device)) * side_of(device);
    }
};

}  // namespace

void add_blocks_group(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksGroup>());
}

}  // namespace dlprim::matmul
