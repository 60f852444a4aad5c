// SPDX-License-Identifier: MIT
// inner_product.blocks_integers: weights in GGUF's blocks on CPUs for one row of inputs, which are
// rounded to integers of 16 bits.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/blocks.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks_integers.cl";
constexpr std::int64_t most_columns = 256, k_block = 1024;  // MOST_COLUMNS, K_BLOCK

class BlocksIntegers : public BlockEngine {
  public:
    BlocksIntegers() : BlockEngine("blocks_integers") {}

    bool computes_in(Precision precision) const override { return precision == Precision::tf32; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (problem.precision != Precision::tf32)
            return Verdict::no("it rounds inputs, which precision tf32 allows");
        if (Verdict verdict = check_wide_vectors(device); !verdict) return verdict;
        if (Verdict verdict = BlockEngine::is_applicable(device, problem); !verdict) return verdict;
        if (type_of(problem).elements == 1)
            return Verdict::no("it multiplies integers, and these weights are floats");
        if (const Gemm g = gemm_of(problem); g.m != 1)
            return Verdict::no(cat("it supports one row, and the product has ", g.m));
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        // Unpacking and multiplying a weight takes as long as two products of floats. It is faster
        // than inner_product.blocks also where memory decides.
        const double steps = 2 * static_cast<double>(g.n) * static_cast<double>(g.k);
        return 0.9 * roofline_seconds(device, problem, 2 * steps, 0.7);
    }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const Traits& device = context.traits();
        constexpr std::int64_t at_a_time = 4;
        const std::string options =
            cat(flush_subnormals, block_options(device, type_of(problem)), define("NV", at_a_time),
                define("MOST_COLUMNS", most_columns), define("K_BLOCK", k_block));
        auto program = context.build(
            {source, epilogue_defines(problem, g, true) + kernel_source(source), options});
        // Each work-item rounds all inputs.
        const std::int64_t items = 8 * std::max(device.compute_units, 1);
        const std::int64_t columns =
            std::min(most_columns, ceil_div(ceil_div(g.n, items), at_a_time) * at_a_time);
        NDRange range;
        range.dims = 1;
        range.global = {static_cast<std::size_t>(ceil_div(g.n, columns)), 1, 1};
        range.local = {1, 1, 1};
        KernelCall call(program, "matmul_blocks_integers", range);
        bind(call, problem, g).size("columns", columns);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_blocks_integers(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksIntegers>());
}

}  // namespace dlprim::matmul
