// SPDX-License-Identifier: MIT
// matmul.gemv: products on GPUs of a few rows with a matrix that is contiguous along k. Their time
// is that of reading the matrix once.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t most_rows = 16;

class Gemv : public MatMulEngine {
  public:
    explicit Gemv(const std::string& op) : MatMulEngine(op, "gemv") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        // Compilers for CPUs take minutes for its unrolled work-group, and CPUs have matmul.dot.
        if (device.wide_vectors) return Verdict::no("it is made for GPUs; on CPUs use matmul.dot");
        if (device.max_work_group < 32 || device.local_bytes < 8448)
            return Verdict::no(
                "it needs work-groups of 32 work-items and 8.25 KiB of local memory");
        if (Verdict verdict = check_gemm(problem, true); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.m > most_rows)
            return Verdict::no(
                cat("it supports at most ", most_rows, " rows, and the product has ", g.m));
        if (g.transpose_a && g.m > 1 && g.k > 1)
            return Verdict::no("it needs contiguous rows of the first input, which is transposed");
        if (!g.transpose_b && g.n > 1 && g.k > 1)
            return Verdict::no(
                "it needs contiguous columns of the second input, which is not transposed");
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t rows = tuning.at("rows"), columns = tuning.at("columns"),
                           threads = tuning.at("threads");
        const double blocks =
            static_cast<double>(ceil_div(g.m, rows) * ceil_div(g.n, columns) * g.batches);
        const double steps = static_cast<double>(ceil_div(g.k, 4 * threads) * 4 * threads);
        const double reduce = 8.0 * static_cast<double>(threads);
        const double flops = blocks * static_cast<double>(rows * columns) * 2.0 * (steps + reduce);
        return roofline_seconds(device, problem, flops, device.wide_vectors ? 0.02 : 0.25);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const Tuning start = default_tuning(device, problem);
        TuneSpace space{{"rows", {start.at("rows")}}, {"columns", {1, 2}}};
        for (std::int64_t threads : {32, 64, 128})
            if (threads <= static_cast<std::int64_t>(device.max_work_group))
                space["threads"].push_back(threads);
        return space;
    }
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        // Only a few values, so that kernels are shared. Rows and columns of a partial block are
        // computed twice.
        const std::int64_t rows = g.m <= 1 ? 1 : g.m <= 2 ? 2 : g.m <= 4 ? 4 : 8;
        return {{"rows", rows}, {"columns", 2}, {"threads", device.max_work_group >= 64 ? 64 : 32}};
    }

    std::vector<std::string> sources() const override { return {"matmul/gemv.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t rows = tuning.at("rows"), columns = tuning.at("columns"),
                           threads = tuning.at("threads");
        const std::string defines =
            cat("#define THREADS ", threads, "\n#define MR ", rows, "\n#define NC ", columns, "\n",
                epilogue_defines(problem, g), batch_defines(batch_offsets(g)));
        auto program = context.build({"matmul/gemv.cl", defines + kernel_source("matmul/gemv.cl"),
                                      gemm_storage(problem, g)});
        const std::int64_t blocks_m = ceil_div(g.m, rows), blocks_n = ceil_div(g.n, columns);
        NDRange range;
        range.global = {static_cast<std::size_t>(blocks_m * blocks_n * g.batches * threads), 1, 1};
        range.local = {static_cast<std::size_t>(threads), 1, 1};
        KernelCall call(program, "matmul_gemv", range);
        bind_factors(call, problem, g);
        bind_output(call, problem, g);
        bind_batch(call, g);
        bind_sizes(call, g)
            .size("blocks_m", blocks_m)
            .size("blocks_n", blocks_n)
            .scalar("alpha", g.alpha);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_gemv(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Gemv>(op));
}

}  // namespace dlprim::matmul
