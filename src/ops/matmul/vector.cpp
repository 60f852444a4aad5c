// SPDX-License-Identifier: MIT
// matmul.vector: register tiles of explicit vectors on packed panels, for CPUs. The planner packs a
// constant B once (Layout::packed). Any other B is packed into the workspace in every run.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/engine.hpp"
#include "ops/matmul/vector_tile.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t pack_steps = 64;        // of k, the fewest that an item packs
constexpr std::int64_t most_pack_steps = 512;  // long runs are prefetched well
constexpr std::int64_t most_tiles = 8;         // TILES of vector.cl

/// How a problem is divided.
struct Cut {
    std::int64_t width, vectors, rows;  ///< W, NV, MR
    std::int64_t panels, tiles, tiles_per_item, k_block;
    bool pack_a;
    std::int64_t nr() const { return width * vectors; }
    std::int64_t panel_floats(std::int64_t k) const { return nr() * k; }
};

std::int64_t copies_of_a(const Gemm& g) {
    return g.shared_a() ? 1 : g.batches;
}
std::int64_t copies_of_b(const Gemm& g) {
    return g.shared_b() ? 1 : g.batches;
}

class Vector : public MatMulEngine {
  public:
    explicit Vector(const std::string& op) : MatMulEngine(op, "vector") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_wide_vectors(device); !verdict) return verdict;
        return check_gemm(problem);
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        LayoutChoice plain;
        plain.inputs.resize(problem.inputs.size());
        plain.outputs.resize(problem.outputs.size());
        const Gemm g = gemm_of(problem);
        if (!g.constant_b) return {plain};
        LayoutChoice packed = plain;
        const Cut cut = cut_of(device, problem, g, default_tuning(device, problem));
        packed.inputs[1] = Layout::packed(
            cat("matmul.vector:n", g.n, "k", g.k, "w", cut.nr(), g.transpose_b ? "t" : ""),
            packed_b_bytes(g, cut));
        return {packed, plain};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(device, problem, g, tuning);
        return workspace_b(problem, g, cut) + (cut.pack_a ? packed_a_bytes(g, cut) : 0);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(device, problem, g, tuning);
        const double padded = 2.0 * static_cast<double>(rows_computed(cut.rows, g.m)) *
                              static_cast<double>(cut.panels * cut.nr()) *
                              static_cast<double>(g.k * g.batches);
        const double rate = std::max(device.gbytes_per_s, 1.0) * 1e9;
        double seconds = roofline_seconds(device, problem, padded, 0.85);
        if (const std::uint64_t bytes = workspace_b(problem, g, cut))
            seconds += 3.0 * static_cast<double>(bytes) / rate + device.launch_us * 1e-6;
        if (cut.pack_a)
            seconds +=
                1.5 * static_cast<double>(packed_a_bytes(g, cut)) / rate + device.launch_us * 1e-6;
        return seconds;
    }

    TuneSpace tune_space(const Traits&, const Problem&) const override {
        return {{"pack_a", {0, 1}}, {"k_block", {96, 128, 192, 256}}};
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t panels = ceil_div(g.n, device.vector_width * vectors);
        return {{"pack_a", g.m > 1 && panels >= 4 ? 1 : 0}, {"k_block", 256}};
    }

    std::vector<std::string> sources() const override {
        return {"matmul/vector.cl", "matmul/pack.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(context.traits(), problem, g, tuning);
        const std::uint64_t b_bytes = workspace_b(problem, g, cut);
        auto launch = std::make_unique<KernelLaunch>();
        if (b_bytes) launch->add(pack_b(context, g, cut, g.workspace, 0));
        if (cut.pack_a) {
            KernelCall call = pack_call(context, g, cut.tiles, copies_of_a(g));
            call.tensor("from", g.a).tensor_at("to", g.workspace, b_bytes);
            call.size("count", g.m);
            call.size("width", cut.rows);
            call.scalar("line_step", g.transpose_a ? std::int64_t{1} : g.k);
            call.scalar("k_step", g.transpose_a ? g.m : std::int64_t{1});
            launch->add(std::move(call));
        }

        const Gemm packed = packed_batch(g, cut);
        const std::string defines =
            cat("#define W ", cut.width, "\n#define NV ", cut.vectors, "\n#define MR ", cut.rows,
                "\n#define TILES ", most_tiles, "\n", epilogue_defines(problem, g, true));
        auto program = context.build(
            {"matmul/vector.cl", defines + kernel_source("matmul/vector.cl"), flush_subnormals});
        NDRange range;
        range.dims = 3;
        range.global = {static_cast<std::size_t>(cut.panels),
                        static_cast<std::size_t>(ceil_div(cut.tiles, cut.tiles_per_item)),
                        static_cast<std::size_t>(g.batches)};
        range.local = {1, 1, 1};
        KernelCall call(program, "matmul_vector", range);
        if (cut.pack_a)
            call.tensor_at("a", g.workspace, b_bytes);
        else
            call.tensor("a", g.a);
        call.tensor("b", b_bytes ? g.workspace : g.b);
        bind_output(call, problem, g);
        bind_batch_digits(call, packed);
        const std::int64_t a_row = cut.pack_a || g.transpose_a ? 1 : g.k;
        bind_sizes(call, g)
            .size("k_block", cut.k_block)
            .scalar("a_tile", cut.rows * (cut.pack_a ? g.k : a_row))
            .scalar("a_row", a_row)
            .scalar("a_k", cut.pack_a      ? cut.rows
                           : g.transpose_a ? g.m
                                           : std::int64_t{1})
            .scalar("b_panel", cut.panel_floats(g.k))
            .size("tiles", cut.tiles_per_item)
            .scalar("alpha", g.alpha);
        launch->add(std::move(call));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning& tuning, int index) const override {
        require(index == 1, name(), " packs its second input alone");
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(context.traits(), problem, g, tuning);
        auto launch = std::make_unique<KernelLaunch>();
        Gemm alone = g;
        alone.b = 0;
        launch->add(pack_b(context, alone, cut, 1, 0));
        return launch;
    }

  private:
    static constexpr std::int64_t vectors = vector_tile_vectors;

    static Cut cut_of(const Traits& device, const Problem& problem, const Gemm& g,
                      const Tuning& tuning) {
        (void)problem;
        Cut cut{};
        cut.width = vector_tile_lanes(device);
        cut.vectors = vectors;
        cut.rows = vector_tile_rows(device);
        cut.pack_a = tuning.at("pack_a") != 0;
        cut.panels = ceil_div(g.n, cut.nr());
        cut.tiles = ceil_div(g.m, cut.rows);
        // Several tiles of rows reuse a block of the panel, but there must be enough items for all
        // cores.
        cut.tiles_per_item = std::clamp<std::int64_t>(cut.tiles, 1, most_tiles);
        const std::int64_t wanted = 8 * std::max(device.compute_units, 1);
        while (cut.tiles_per_item > 1 &&
               cut.panels * ceil_div(cut.tiles, cut.tiles_per_item) * g.batches < wanted)
            cut.tiles_per_item = (cut.tiles_per_item + 1) / 2;
        // Items of equal size: one with a tile of its own would read the whole panel for it.
        // At least one, of a product without rows too.
        const std::int64_t items =
            std::max<std::int64_t>(ceil_div(cut.tiles, cut.tiles_per_item), 1);
        cut.tiles_per_item = std::max<std::int64_t>(ceil_div(cut.tiles, items), 1);
        const std::int64_t block = std::max<std::int64_t>(tuning.at("k_block"), 1);
        cut.k_block = cut.tiles_per_item > 1 ? block : std::max<std::int64_t>(g.k, 1);
        return cut;
    }

    /// The problem with the batch strides of packed operands, which have the matrices of all
    /// batches one after the other, or one for all.
    static Gemm packed_batch(const Gemm& g, const Cut& cut) {
        Gemm out = g;
        std::int64_t a = g.shared_a() ? 0 : cut.tiles * cut.rows * g.k;
        std::int64_t b = g.shared_b() ? 0 : cut.panels * cut.panel_floats(g.k);
        for (auto dim = out.batch.rbegin(); dim != out.batch.rend(); ++dim) {
            if (cut.pack_a) dim->a = a;
            dim->b = b;
            a *= dim->size;
            b *= dim->size;
        }
        return out;
    }

    static std::uint64_t packed_b_bytes(const Gemm& g, const Cut& cut) {
        return static_cast<std::uint64_t>(copies_of_b(g) * cut.panels * cut.panel_floats(g.k)) * 4;
    }
    static std::uint64_t packed_a_bytes(const Gemm& g, const Cut& cut) {
        return static_cast<std::uint64_t>(copies_of_a(g) * cut.tiles * cut.rows * g.k) * 4;
    }
    /// Bytes of B's panels in the workspace; 0 if B is already packed.
    static std::uint64_t workspace_b(const Problem& problem, const Gemm& g, const Cut& cut) {
        return problem.inputs[1].layout.kind == Layout::Kind::packed ? 0 : packed_b_bytes(g, cut);
    }

    /// The call that packs A, with what that of B has in common with it.
    static KernelCall pack_call(ContextImpl& context, const Gemm& g, std::int64_t panels,
                                std::int64_t copies) {
        // Runs along k as long as leave enough items for all cores.
        const std::int64_t pieces = ceil_div(g.k, pack_steps);
        const std::int64_t wanted = 8 * std::max(context.traits().compute_units, 1);
        const std::int64_t steps =
            std::clamp(panels * copies * pieces / wanted * pack_steps, pack_steps, most_pack_steps);
        NDRange range;
        range.dims = 3;
        range.global = {static_cast<std::size_t>(panels),
                        static_cast<std::size_t>(ceil_div(g.k, steps)),
                        static_cast<std::size_t>(copies)};
        range.local = {1, 1, 1};
        const std::string text = kernel_source("matmul/pack.cl");
        KernelCall call(context.build({"matmul/pack.cl", text, ""}), "matmul_pack", range);
        call.size("k", g.k).size("panels", panels).size("steps", steps);
        bind_batch_digits(call, g, false);
        return call;
    }
    static KernelCall pack_b(ContextImpl& context, const Gemm& g, const Cut& cut, int to,
                             std::uint64_t at) {
        Gemm turned = g;
        for (Gemm::BatchDim& dim : turned.batch) dim.a = dim.b;
        KernelCall call = pack_call(context, turned, cut.panels, copies_of_b(g));
        call.tensor("from", g.b).tensor_at("to", to, at);
        call.size("count", g.n);
        call.size("width", cut.nr());
        call.scalar("line_step", g.transpose_b ? g.k : std::int64_t{1});
        call.scalar("k_step", g.transpose_b ? std::int64_t{1} : g.n);
        return call;
    }
};

}  // namespace

void add_vector(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Vector>(op));
}

}  // namespace dlprim::matmul
