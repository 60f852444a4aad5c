// SPDX-License-Identifier: MIT
// matmul.wgmma_matrix_planes (mma_matrix_planes): products on NVIDIA's tensor cores, in exact float
// or in tf32. A kernel first splits both operands into halves (kernels/matmul/planes_pack.cl), and
// the product only copies and multiplies them (planes.cl); operands may also be stored in 16 bits,
// where their rows are no multiple of what copies want. wgmma_split needs no such pass, but it
// splits a value in every work-group that reads it. If a product has few tiles and a long K, K is
// split into parts in the workspace, and a third kernel adds them in order.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/device_table.hpp"
#include "engine/matrix/split_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* pack_path = "matmul/planes_pack.cl";
constexpr const char* product_path = "matmul/planes.cl";

/// One operand in the workspace: blocks of 64 lines and 64 of K, and behind them a factor for each
/// line of a block.
struct PlanesOperand {
    std::int64_t tiles, blocks, block_bytes;

    PlanesOperand(std::int64_t lines, std::int64_t k, int products)
        : tiles(ceil_div(lines, split_rows)),
          blocks(ceil_div(k, split_depth)),
          block_bytes(split_rows * split_depth * (products == 1 ? 2 : 4)) {}
    std::int64_t groups() const { return tiles * blocks; }
    std::int64_t factors_at() const { return groups() * block_bytes; }
    std::int64_t bytes() const { return factors_at() + groups() * split_rows * 4; }
};

/// Where the workspace has A, B and the parts of C.
struct Places {
    PlanesOperand a, b;

    Places(const Gemm& g, int products) : a(g.m, g.k, products), b(g.n, g.k, products) {}
    std::int64_t b_at() const { return a.bytes(); }
    std::int64_t parts_at() const { return a.bytes() + b.bytes(); }
};

struct Cut : TileCut {
    std::int64_t wm, blocks_part;
};
Cut cut_of(const Gemm& g, std::int64_t wm, std::int64_t splits) {
    const std::int64_t blocks = ceil_div(g.k, split_depth);
    Cut cut{{ceil_div(g.m, split_rows * wm), ceil_div(g.n, split_columns), 1, 1}, wm, 1};
    cut.blocks_part = ceil_div(blocks, std::clamp<std::int64_t>(splits, 1, blocks));
    cut.splits = ceil_div(blocks, cut.blocks_part);
    cut.k_part = cut.blocks_part * split_depth;
    return cut;
}
Cut cut_of(const Gemm& g, const Tuning& tuning) {
    return cut_of(g, wm_of(tuning), tuning.at("splits"));
}

/// Steps in local memory, each with a factor for every row and column; 0 if two do not fit.
std::int64_t stages_of(MatrixUnit unit, const Traits& device, std::int64_t wm, int products) {
    return planes_stages(unit, device, wm, products, (split_rows * wm + split_columns) * 4);
}

/// A step with a single product is this many times as fast as one with three: each step of 64 of K
/// multiplies its sums by factors of rows and columns, which takes as long. On an H200 it is 1.15
/// to 1.6 times.
constexpr double one_product_gain = 1.15;

double seconds_of(const Traits& device, MatrixUnit unit, const Problem& problem, const Gemm& g,
                  const Cut& cut) {
    const int products = split_products(problem);
    const Places places(g, products);
    const auto packed = static_cast<double>(places.parts_at());
    const double bytes_per_s = std::max(device.gbytes_per_s, 1.0) * 0.9e9;
    const double given = g.a_elements() * static_cast<double>(size_of(problem.inputs[0].dtype)) +
                         g.b_elements() * static_cast<double>(size_of(problem.inputs[1].dtype));
    const double pack_seconds = (given + packed) / bytes_per_s + device.launch_us * 1e-6;
    TileSpeed speed;
    speed.step_seconds = (cut.wm == 2 ? h200::planes_steps.rows_128 : h200::planes_steps.rows_64) *
                         unit_pace(unit) / (products == 1 ? one_product_gain : 1);
    // Two work-groups with tiles of 64 rows share a compute unit.
    speed.resident = speed.alone = cut.wm == 2 ? 1 : 2;
    const double product_seconds =
        std::max(tile_seconds(device, speed, static_cast<double>(cut.groups(g)),
                              static_cast<double>(cut.blocks_part)),
                 (packed + 4.0 * g.c_elements()) / bytes_per_s);
    return pack_seconds + product_seconds + device.launch_us * 1e-6 +
           parts_seconds(device, g.c_elements() * 4.0, cut.splits, 1.0);
}

class PlanesEngine : public MatMulEngine {
  public:
    PlanesEngine(const std::string& op, MatrixUnit unit)
        : MatMulEngine(op, cat(name_of(unit), "_matrix_planes")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = unit_verdict(unit_, device, {DType::f16}); !verdict) return verdict;
        if (stages_of(unit_, device, 1, split_products(problem)) == 0)
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        if (Verdict verdict = check_gemm(problem, true); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.batches != 1 || g.m == 0 || g.n == 0 || g.k == 0)
            return Verdict::no(
                "it supports a single product of matrices only, none of which may be empty");
        // Where it applies, wgmma_direct needs neither halves in memory nor their factors. The
        // model of one product does not know that yet: it ranks this engine first for gradients of
        // 768 x 768 weights over 8192 rows, which wgmma_direct computes in 41 us on an H200, and
        // this one, of floats, in 66.
        const std::int64_t line_a = g.transpose_a ? g.m : g.k, line_b = g.transpose_b ? g.k : g.n;
        if (problem.precision != Precision::fp32 && problem.inputs[0].dtype != DType::f32 &&
            problem.inputs[0].dtype == problem.inputs[1].dtype && line_a % 8 == 0 &&
            line_b % 8 == 0)
            return Verdict::no("inputs of 16 bits whose rows are aligned need no splitting");
        const Places places(g, split_products(problem));
        if (places.a.groups() + places.b.groups() >= std::int64_t(1) << 31)
            return Verdict::no("a matrix has too many blocks for its 32-bit indices");
        return Verdict::yes();
    }
    bool computes_in(Precision) const override { return true; }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return static_cast<std::uint64_t>(Places(g, split_products(problem)).parts_at()) +
               cut_of(g, tuning).workspace_bytes(g);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, unit_, problem, g, cut_of(g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return rows_tune_space(default_tuning(device, problem), most_wm(device, problem));
    }

    /// The cheapest by the model, of all tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        PartsRange range = parts_of_k(g, 4 * split_depth);
        range.growth = PartsRange::Growth::quarter;
        return choose_rows(most_wm(device, problem), range,
                           [&](std::int64_t wm, std::int64_t splits) {
                               return seconds_of(device, unit_, problem, g, cut_of(g, wm, splits));
                           });
    }

    std::vector<std::string> sources() const override {
        return {pack_path, product_path, "matmul/finish.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(g, tuning);
        auto launch = std::make_unique<KernelLaunch>();
        add_pack(*launch, context, problem, g);
        add_product(*launch, context, problem, g, cut);
        if (cut.splits > 1)
            add_finish(*launch, context, problem, g, cut.splits,
                       static_cast<std::uint64_t>(Places(g, split_products(problem)).parts_at()));
        return launch;
    }

  private:
    std::int64_t most_wm(const Traits& device, const Problem& problem) const {
        return stages_of(unit_, device, 2, split_products(problem)) > 0 ? 2 : 1;
    }

    void add_pack(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                  const Gemm& g) const {
        const Places places(g, split_products(problem));
        const std::string defines =
            cat("#define TA ", g.transpose_a ? 1 : 0, "\n#define TB ", g.transpose_b ? 1 : 0,
                "\n#define PRODUCTS ", split_products(problem), "\n");
        const auto program = context.build(
            {pack_path, defines + kernel_source(pack_path), gemm_storage(problem, g, true)});
        KernelCall call(program, "planes_pack",
                        group_range(places.a.groups() + places.b.groups(), split_items));
        bind_factors(call, problem, g);
        call.tensor("planes", g.workspace, 1)
            .size("m", g.m)
            .size("n", g.n)
            .size("k", g.k)
            .size("blocks", places.a.blocks)
            .size("a_groups", places.a.groups());
        bind_places(call, places);
        launch.add(std::move(call));
    }

    void add_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                     const Gemm& g, const Cut& cut) const {
        const int products = split_products(problem);
        const Places places(g, products);
        const bool split = cut.splits > 1;
        const bool fours = g.n % 4 == 0 && (split || problem.outputs[0].dtype == DType::f32);
        const std::string defines =
            cat("#define WM ", cut.wm, "\n#define PRODUCTS ", products, "\n#define STAGES ",
                stages_of(unit_, context.traits(), cut.wm, products), "\n#define C_FOURS ",
                fours ? 1 : 0, "\n", unit_ == MatrixUnit::mma ? "#define MMA 1\n" : "",
                split ? "#define HAS_RESIDUAL 0\n#define EPILOGUE(v, r)\n"
                      : epilogue_defines(problem, g));
        const auto program = context.build(
            {product_path, defines + kernel_source(product_path), gemm_storage(problem, g, split)});
        KernelCall call(program, "planes_product", group_range(cut.groups(g), split_items));
        call.tensor("planes", g.workspace, 1);
        if (split) {
            const auto parts_at = static_cast<std::uint64_t>(places.parts_at());
            for (const char* name : {"bias", "residual", "c"})
                call.tensor_at(name, g.workspace, parts_at);
            call.scalar("has_bias", std::int32_t{0});
        } else {
            bind_output(call, problem, g);
        }
        // Work-groups that run beside each other share a tile of the larger operand, and go through
        // the tiles of the smaller one, which stays in the cache.
        call.sizes({{"m", g.m},
                    {"n", g.n},
                    {"blocks", places.a.blocks},
                    {"blocks_part", cut.blocks_part},
                    {"tiles_m", cut.tiles_m},
                    {"tiles_n", cut.tiles_n},
                    {"rows_first", g.m <= g.n}});
        bind_places(call, places);
        call.scalar("alpha", split ? 1.0f : g.alpha);
        launch.add(std::move(call));
    }

    void bind_places(KernelCall& call, const Places& places) const {
        call.scalar("a_factors", places.a.factors_at())
            .scalar("b_planes", places.b_at())
            .scalar("b_factors", places.b_at() + places.b.factors_at());
    }

    MatrixUnit unit_;
};

}  // namespace

void add_planes(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units)
        engines.add(std::make_unique<PlanesEngine>(op, unit));
}

}  // namespace dlprim::matmul
