// SPDX-License-Identifier: MIT
// matmul.small: many products of small matrices on GPUs, such as attention in windows. A work-group
// holds both operands of one product whole in local memory, so that each is read once.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t most_lines = 64;   ///< rows and columns of C
constexpr std::int64_t most_steps = 128;  ///< of k
/// More local memory than this leaves room for too few work-groups on a compute unit.
constexpr std::int64_t most_local_bytes = 40 * 1024;
/// Of the peak, for the estimate: what is left beside reading from local memory.
constexpr double efficiency = 0.45;
/// Of the memory's bandwidth: a work-group loads, then multiplies, then stores.
constexpr double bandwidth_share = 0.7;

/// How work-items cover C.
struct Cover {
    std::int64_t rm, rn, ty, tx;
    Cover(const Gemm& g, const Tuning& tuning)
        : rm(tuning.at("rows")),
          rn(tuning.at("columns")),
          ty(ceil_div(g.m, rm)),
          tx(ceil_div(g.n, rn)) {}
    std::int64_t threads() const { return ceil_div(tx * ty, 32) * 32; }
    /// As the kernel lays its operands out.
    std::int64_t local_bytes(const Gemm& g) const {
        const std::int64_t steps = ceil_div(g.k, 4) * 4;
        const std::int64_t a = g.transpose_a ? steps * (ty * rm + 4) : g.m * (steps + 4);
        const std::int64_t b = g.transpose_b ? g.n * (steps + 4) : steps * (tx * rn + 4);
        return 4 * (a + b);
    }
};

class Small : public MatMulEngine {
  public:
    Small() : MatMulEngine("MatMul", "small") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.wide_vectors)
            return Verdict::no("it is made for GPUs; on CPUs use matmul.vector or matmul.dot");
        if (Verdict verdict = check_gemm(problem, true); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.m > most_lines || g.n > most_lines || g.k > most_steps)
            return Verdict::no(cat(
                "it supports at most ", most_lines, " rows and columns and sums of ", most_steps,
                " terms, and the product has ", g.m, " rows, ", g.n, " columns and sums of ", g.k));
        if (g.batches < device.compute_units)
            return Verdict::no(cat("it needs at least one product for each of the device's ",
                                   device.compute_units, " compute units, and the batch has ",
                                   g.batches));
        const Cover cover(g, default_tuning(device, problem));
        const auto room =
            std::min<std::int64_t>(static_cast<std::int64_t>(device.local_bytes), most_local_bytes);
        if (cover.local_bytes(g) > room ||
            cover.threads() > static_cast<std::int64_t>(device.max_work_group))
            return Verdict::no(cat("it needs work-groups of ", cover.threads(), " work-items and ",
                                   cover.local_bytes(g), " bytes of local memory, and may use ",
                                   device.max_work_group, " and ", room));
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cover cover(g, tuning);
        const double padded = 2.0 * static_cast<double>(cover.threads() * cover.rm * cover.rn) *
                              static_cast<double>(g.k * g.batches);
        // Work-groups run in rounds over the compute units, and a round that is not full takes as
        // long as one that is.
        const double rounds = static_cast<double>(g.batches) / std::max(device.compute_units, 1);
        const double fill = rounds / std::max(1.0, rounds < 4 ? std::ceil(rounds) : rounds);
        return roofline_seconds(device, problem, padded, efficiency * std::max(fill, 1e-3),
                                bandwidth_share);
    }

    TuneSpace tune_space(const Traits&, const Problem&) const override {
        return {{"rows", {4, 8}}, {"columns", {4, 8}}};
    }
    Tuning default_tuning(const Traits&, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        return {{"rows", g.m > 32 ? 8 : 4}, {"columns", 4}};
    }

    std::vector<std::string> sources() const override { return {"matmul/small.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cover cover(g, tuning);
        return tiled_launch(
            context, problem, "matmul/small.cl", "matmul_small",
            cat("#define M ", g.m, "\n#define N ", g.n, "\n#define K ", g.k, "\n#define RM ",
                cover.rm, "\n#define RN ", cover.rn, "\n#define TY ", cover.ty, "\n#define TX ",
                cover.tx, "\n#define THREADS ", cover.threads(), "\n"),
            static_cast<std::size_t>(cover.threads()), {1, 1, 1, g.k});
    }
};

}  // namespace

void add_small(EngineRegistry& engines) {
    engines.add(std::make_unique<Small>());
}

}  // namespace dlprim::matmul
