// SPDX-License-Identifier: MIT
// matmul.dot: products on CPUs whose operands are both contiguous along k (InnerProduct). They are
// read in place, without packing. With few rows the weights are read once, at the speed of memory.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

class Dot : public MatMulEngine {
  public:
    explicit Dot(const std::string& op) : MatMulEngine(op, "dot") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_wide_vectors(device); !verdict) return verdict;
        if (Verdict verdict = check_gemm(problem); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.transpose_a && g.m > 1 && g.k > 1)
            return Verdict::no("it needs contiguous rows of the first input, which is transposed");
        if (!g.transpose_b && g.n > 1 && g.k > 1)
            return Verdict::no(
                "it needs contiguous columns of the second input, which is not transposed");
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t rows = std::clamp<std::int64_t>(g.m, 1, most_rows(device)),
                           columns = std::clamp<std::int64_t>(g.n, 1, most_columns(device));
        const std::int64_t width = width_of(device);
        // Vector operations, then the horizontal sums and the scalar remainder at the end.
        const double steps =
            static_cast<double>(ceil_div(g.m, rows) * ceil_div(g.n, columns) * g.batches);
        const double slots = static_cast<double>(rows * columns);
        const std::int64_t whole_vectors = g.k / width;
        const double vectors = steps * (slots * static_cast<double>(whole_vectors) +
                                        slots * (8.0 + static_cast<double>(g.k % width)));
        const double loads_bound = std::max(1.0, static_cast<double>(rows + columns) * 1.2 / slots);
        double seconds = roofline_seconds(
            device, problem, 2.0 * vectors * static_cast<double>(width) * loads_bound, 0.7);
        // B is read once per block of rows, from memory if it does not fit into the cache.
        const double b_bytes = g.b_elements() * 4;
        if (b_bytes > static_cast<double>(std::max<std::uint64_t>(device.cache_bytes, 1 << 20)))
            seconds = std::max(seconds, b_bytes * static_cast<double>(ceil_div(g.m, rows)) /
                                            (std::max(device.gbytes_per_s, 1.0) * 0.7e9));
        // Attention's scores of a few tokens take less time than their launch by any engine. They
        // are left to the engine of longer sequences, so that a new length needs no other program.
        if (!g.constant_b && g.m > 1 && std::max(g.m, g.n) <= most_rows(device))
            seconds += device.launch_us * 1e-6;
        return seconds;
    }

    std::vector<std::string> sources() const override { return {"matmul/dot.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const Traits& device = context.traits();
        const std::int64_t rows = most_rows(device), columns = most_columns(device);
        const std::string defines =
            cat("#define W ", width_of(device), "\n#define MR ", rows, "\n#define NV ", columns,
                "\n", epilogue_defines(problem, g, true));
        auto program = context.build(
            {"matmul/dot.cl", defines + kernel_source("matmul/dot.cl"), flush_subnormals});
        // A work-item gets enough columns to be worth starting, but few enough to balance the load.
        const std::int64_t row_blocks = ceil_div(g.m, rows);
        const std::int64_t column_blocks = ceil_div(g.n, columns);
        const double block_work =
            static_cast<double>(std::clamp<std::int64_t>(g.m, 1, rows) * columns) *
            static_cast<double>(std::max<std::int64_t>(g.k, 1));
        std::int64_t per_item =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(200e3 / block_work), 1, 64);
        const std::int64_t wanted = 8 * std::max(device.compute_units, 1);
        while (per_item > 1 && row_blocks * ceil_div(column_blocks, per_item) * g.batches < wanted)
            per_item = (per_item + 1) / 2;
        NDRange range;
        range.dims = 3;
        range.global = {static_cast<std::size_t>(row_blocks),
                        static_cast<std::size_t>(ceil_div(column_blocks, per_item)),
                        static_cast<std::size_t>(g.batches)};
        range.local = {1, 1, 1};
        KernelCall call(program, "matmul_dot", range);
        call.tensor("a", g.a).tensor("b", g.b);
        bind_output(call, problem, g);
        bind_batch_digits(call, g);
        bind_sizes(call, g).size("columns", per_item * columns).scalar("alpha", g.alpha);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    // Of a whole block. They follow from the device alone, so that all sizes have one program.
    static std::int64_t most_rows(const Traits& device) {
        return device.vector_registers >= 32 ? 6 : 4;
    }
    static std::int64_t most_columns(const Traits& device) {
        return device.vector_registers >= 32 ? 4 : 2;
    }
    static std::int64_t width_of(const Traits& device) {
        return device.vector_width >= 16 ? 16 : device.vector_width >= 8 ? 8 : 4;
    }
};

}  // namespace

void add_dot(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Dot>(op));
}

}  // namespace dlprim::matmul
