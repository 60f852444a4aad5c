// SPDX-License-Identifier: MIT
// inner_product.blocks_few and normed_product.blocks_few: weights in GGUF's blocks on GPUs for few
// rows of inputs, as in decoding. Their time is that of reading the weights once.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/reached_by.hpp"
#include "ops/matmul/blocks.hpp"
#include "ops/matmul/normed.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/blocks_few.cl";
constexpr std::int64_t items = 128, most_rows = 16;

class BlocksFew : public BlockEngine {
  public:
    explicit BlocksFew(std::string_view op = "InnerProduct") : BlockEngine("blocks_few", op) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.wide_vectors)
            return Verdict::no("it is made for GPUs; on CPUs use inner_product.blocks");
        const std::uint64_t local = 4 * (Normed(problem) ? 24 * 129 + items : 64 * 33);
        if (device.max_work_group < items || device.local_bytes < local)
            return Verdict::no(cat("it needs work-groups of ", items, " work-items and ", local,
                                   " bytes of local memory"));
        if (Verdict verdict = BlockEngine::is_applicable(device, problem); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.m > most_rows)
            return Verdict::no(
                cat("it supports at most ", most_rows, " rows, and the product has ", g.m));
        if (Normed(problem).other >= 0 && !problem.epilogue.empty())
            return Verdict::no("a gate has no epilogue behind it");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        // Rows and columns of a partial block are computed twice.
        const std::int64_t rows = tuning.at("rows"),
                           columns = tuning.at("columns") * (items / tuning.at("line"));
        const double computed =
            static_cast<double>(ceil_div(g.m, rows) * rows) *
            static_cast<double>(ceil_div(weight_rows(problem, g), columns) * columns);
        // A norm takes each line as long as two more columns.
        const double norm = Normed(problem) ? 2.0 / static_cast<double>(tuning.at("columns")) : 0;
        return roofline_seconds(device, problem,
                                2 * computed * static_cast<double>(g.k) * (1 + norm), 0.25);
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        // Only a few values, so that kernels are shared.
        const std::int64_t rows = g.m <= 1 ? 1 : g.m <= 2 ? 2 : g.m <= 4 ? 4 : 8;
        // A line reads inputs once for all of its columns, but there should be two groups a unit.
        // Lines are long where there would be fewer, so that as many bytes are on their way.
        const std::int64_t wanted = 2 * std::max(device.compute_units, 1), most = rows == 8 ? 2 : 4;
        const std::int64_t n = weight_rows(problem, g), least = n > g.n ? 2 : 1;
        if (ceil_div(n, items / 32 * most) < wanted && g.k >= 1024)
            return {{"rows", rows}, {"columns", 2}, {"line", items}};
        std::int64_t columns = most;
        while (columns > least && ceil_div(n, columns * items / 32) < wanted) columns /= 2;
        return {{"rows", rows}, {"columns", columns}, {"line", 32}};
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t rows = default_tuning(device, problem).at("rows");
        TuneSpace space{{"rows", {rows}}, {"columns", {2}}, {"line", {32, 64, items}}};
        if (Normed(problem).other < 0) space["columns"].push_back(1);
        if (rows < 8) space["columns"].push_back(4);
        return space;
    }

    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t rows = tuning.at("rows"), columns = tuning.at("columns"),
                           line = tuning.at("line"), lines = items / line;
        const GgufType& type = type_of(problem);
        const Normed normed(problem);
        const bool gated = normed.other >= 0;
        // Steps with scales have enough loads of their own, and their registers are few.
        const std::int64_t unroll = type.elements == 1 ? 2 : 1;
        const std::string options =
            cat(block_options(context.traits(), type), define("LINE", line), define("LINES", lines),
                define("UNROLL", unroll), define("MR", rows), define("NC", columns),
                define("NORMED", normed ? 1 : 0), define("GATED", gated ? 1 : 0));
        Problem finished = problem;
        if (gated) finished.epilogue = normed.gate;
        const std::int64_t groups = ceil_div(weight_rows(problem, g), columns * lines);
        KernelCall call(
            context.build({source, epilogue_defines(finished, g) + kernel_source(source), options}),
            "matmul_blocks_few", group_range(groups * ceil_div(g.m, rows), items));
        // Without a norm or a gate the kernel does not read what is bound in their place.
        call.tensor("scales", normed ? normed.scale : g.c);
        call.tensor("other", gated ? normed.other : g.c, gated ? 1 : 4);
        bind(call, problem, g)
            .sizes({{"m", g.m}, {"groups", groups}})
            .scalar("eps", static_cast<float>(normed.eps));
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    /// Of all of the product's weights.
    static std::int64_t weight_rows(const Problem& problem, const Gemm& g) {
        return Normed(problem).other >= 0 ? 2 * g.n : g.n;
    }
};

class NormedFew final : public BlocksFew, public ReachedBy {
  public:
    NormedFew() : BlocksFew(normed_type) {}
    std::string_view reached_by() const override { return reached_by_norms; }
};

}  // namespace

void add_blocks_few(EngineRegistry& engines) {
    engines.add(std::make_unique<BlocksFew>());
    engines.add(std::make_unique<NormedFew>());
}

}  // namespace dlprim::matmul
