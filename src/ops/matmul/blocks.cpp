// SPDX-License-Identifier: MIT
// inner_product.blocks: weights in GGUF's blocks on CPUs, which are unpacked on the way: in
// registers for one row of inputs, into local memory for several.
#include "ops/matmul/blocks.hpp"
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/vector_tile.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks.cl";
constexpr std::int64_t most_rows = 96, most_k_block = 1024;  // ROWS, K_BLOCK

class Blocks : public BlockEngine {
  public:
    Blocks() : BlockEngine("blocks") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_wide_vectors(device); !verdict) return verdict;
        return BlockEngine::is_applicable(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        // Unpacking a weight takes as long as some products.
        const std::int64_t unpacked = g.m == 1 ? 3 : 6 * ceil_div(g.m, most_rows);
        const double steps = static_cast<double>((g.m + unpacked) * g.n) * static_cast<double>(g.k);
        return roofline_seconds(device, problem, 2 * steps, 0.7);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const Traits& device = context.traits();
        const bool one = g.m == 1, many_registers = device.vector_registers >= 32;
        constexpr std::int64_t rows = 6;  // of a tile, whose sums are in registers
        const std::int64_t columns = one || many_registers ? 4 : 2;
        const std::string options =
            cat(flush_subnormals, block_options(device, type_of(problem)),
                define("W", vector_tile_lanes(device)), define("MR", rows), define("NV", columns),
                define("ROWS", most_rows), define("K_BLOCK", most_k_block));
        auto program = context.build(
            {source, epilogue_defines(problem, g, true) + kernel_source(source), options});
        const std::int64_t row_blocks = ceil_div(g.m, most_rows);
        const std::int64_t per_item = columns_of_item(device, g, columns);
        const std::int64_t items = ceil_div(g.n, per_item);
        NDRange range;
        range.dims = one ? 1 : 2;
        range.global = {static_cast<std::size_t>(one ? items : row_blocks),
                        static_cast<std::size_t>(one ? 1 : items), 1};
        range.local = {1, 1, 1};
        KernelCall call(program, one ? "matmul_blocks_row" : "matmul_blocks_rows", range);
        bind(call, problem, g).size("columns", per_item);
        if (!one) call.size("m", g.m);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    /// Enough columns for a work-item to be worth starting, and few enough to balance the load.
    static std::int64_t columns_of_item(const Traits& device, const Gemm& g, std::int64_t step) {
        const double work = static_cast<double>(std::min(g.m, most_rows) + 3) *
                            static_cast<double>(step * std::max<std::int64_t>(g.k, 1));
        std::int64_t steps =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(200e3 / work), 1, 64);
        const std::int64_t wanted = 8 * std::max(device.compute_units, 1);
        while (steps > 1 && ceil_div(g.m, most_rows) * ceil_div(g.n, steps * step) < wanted)
            steps = (steps + 1) / 2;
        return steps * step;
    }
};

}  // namespace

void add_blocks(EngineRegistry& engines) {
    engines.add(std::make_unique<Blocks>());
}

}  // namespace dlprim::matmul
