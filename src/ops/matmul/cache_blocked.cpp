// SPDX-License-Identifier: MIT
// matmul.cache_blocked: large products on CPUs. Blocks of both operands are packed to local memory,
// which is a core's own cache, just before they are used (kernels/matmul/cache_blocked.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/matmul/engine.hpp"
#include "ops/matmul/vector_tile.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* source = "matmul/cache_blocked.cl";
constexpr std::int64_t vectors = vector_tile_vectors;

/// How a problem is divided.
struct Cut {
    std::int64_t width, rows;               ///< W, MR
    std::int64_t panels, tiles;             ///< of C
    std::int64_t k_block, parts, k_part;    ///< k_part is a multiple of k_block
    std::int64_t row_tiles, column_panels;  ///< of a work-item
    std::int64_t a_width;                   ///< rows of a packed tile of A
    std::int64_t nr() const { return width * vectors; }
    std::int64_t row_blocks() const { return ceil_div(tiles, row_tiles); }
    std::int64_t column_blocks() const { return ceil_div(panels, column_panels); }
};

class CacheBlocked : public MatMulEngine {
  public:
    explicit CacheBlocked(const std::string& op) : MatMulEngine(op, "cache_blocked") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_wide_vectors(device); !verdict) return verdict;
        if (device.local_bytes < least_local)
            return Verdict::no(cat("it needs ", least_local >> 10, " KiB of local memory, not ",
                                   device.local_bytes >> 10));
        const Gemm g = gemm_of(problem);
        if (g.m * g.n * g.k * g.batches == 0) return Verdict::no("it needs matrices with elements");
        return check_gemm(problem);
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(device, g, tuning);
        if (cut.parts == 1 && cut.k_block >= g.k) return 0;
        return static_cast<std::uint64_t>(g.batches * cut.parts * cut.panels * cut.tiles *
                                          cut.rows * cut.nr()) *
               4;
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(device, g, tuning);
        const int units = std::max(device.compute_units, 1);
        const double slots = cycles(g, cut, units) * static_cast<double>(2 * cut.width * units);
        return roofline_seconds(device, problem, slots, 0.9);
    }

    TuneSpace tune_space(const Traits&, const Problem&) const override {
        return {{"k_block", {256, 384}}};
    }

    Tuning default_tuning(const Traits&, const Problem&) const override {
        return {{"k_block", 384}};
    }

    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(context.traits(), g, tuning);
        auto launch = std::make_unique<KernelLaunch>();
        const std::string defines =
            cat("#define W ", cut.width, "\n#define NV ", vectors, "\n#define MR ", cut.rows,
                "\n#define K_BLOCK ", most_k_block(tuning), "\n#define A_FLOATS ",
                a_floats(context.traits()), "\n", epilogue_defines(problem, g, true));
        const auto program =
            context.build({source, defines + kernel_source(source), flush_subnormals});
        NDRange range;
        range.dims = 3;
        range.global = {static_cast<std::size_t>(cut.column_blocks()),
                        static_cast<std::size_t>(cut.row_blocks()),
                        static_cast<std::size_t>(g.batches * cut.parts)};
        range.local = {1, 1, 1};
        const bool kept = cut.parts > 1 || cut.k_block < g.k;
        KernelCall call(program, "matmul_cache_blocked", range);
        call.tensor("a", g.a).tensor("b", g.b).tensor("sums", kept ? g.workspace : g.c);
        bind_output(call, problem, g);
        bind_batch_digits(call, g);
        bind_strides(bind_sizes(call, g), g)
            .size("k_block", cut.k_block)
            .size("k_part", cut.k_part)
            .size("parts", cut.parts)
            .size("row_tiles", cut.row_tiles)
            .size("column_panels", cut.column_panels)
            .size("a_width", cut.a_width)
            .scalar("alpha", g.alpha);
        launch->add(std::move(call));
        if (cut.parts == 1) return launch;
        range.global = {static_cast<std::size_t>(cut.panels), static_cast<std::size_t>(cut.tiles),
                        static_cast<std::size_t>(g.batches)};
        KernelCall finish(program, "matmul_cache_blocked_finish", range);
        finish.tensor("sums", g.workspace);
        bind_output(finish, problem, g);
        finish.sizes({{"m", g.m}, {"n", g.n}, {"parts", cut.parts}}).scalar("alpha", g.alpha);
        launch->add(std::move(finish));
        return launch;
    }

  private:
    static constexpr std::uint64_t least_local = 128 << 10;

    /// Half of a core's cache is for the block of A.
    static std::int64_t a_floats(const Traits& device) {
        return static_cast<std::int64_t>(device.local_bytes / 2 / 4);
    }
    static std::int64_t most_k_block(const Tuning& tuning) {
        return std::max<std::int64_t>(tuning.at("k_block"), 1);
    }

    /// An estimate of a core's cycles.
    static double cycles(const Gemm& g, const Cut& cut, std::int64_t units) {
        const auto d = [](std::int64_t v) { return static_cast<double>(v); };
        const std::int64_t items = cut.row_blocks() * cut.column_blocks() * cut.parts * g.batches;
        const double steps = d(std::min(cut.k_part, g.k)),
                     blocks = d(ceil_div(cut.k_part, cut.k_block));
        const double pairs = d(cut.row_tiles * cut.column_panels);
        // Of the busiest work-item, whose tiles are whole unless they are all there are.
        const double rows =
            d(cut.row_tiles == cut.tiles ? rows_computed(cut.rows, g.m) : cut.row_tiles * cut.rows);
        double item = d(cut.column_panels) * steps * rows * d(vectors) + pairs * blocks * 150;
        item += d(cut.row_tiles) * steps * (g.transpose_a ? 4 : 5);
        item += d(cut.column_panels) * steps * (g.transpose_b ? 12 : 5);
        double all = d(ceil_div(items, units)) * item;
        if (cut.parts > 1)
            all += d(cut.parts * cut.tiles * cut.panels * g.batches) / d(units) * 150;
        return all;
    }

    /// The division of work among cores and into blocks that takes the fewest cycles.
    static Cut cut_of(const Traits& device, const Gemm& g, const Tuning& tuning) {
        Cut cut{};
        cut.width = vector_tile_lanes(device);
        cut.rows = vector_tile_rows(device);
        cut.a_width = std::min(cut.rows, rows_computed(cut.rows, g.m));
        cut.panels = std::max<std::int64_t>(ceil_div(g.n, cut.nr()), 1);
        cut.tiles = std::max<std::int64_t>(ceil_div(g.m, cut.rows), 1);
        const std::int64_t k = std::max<std::int64_t>(g.k, 1);
        cut.k_block = ceil_div(k, ceil_div(k, most_k_block(tuning)));
        const std::int64_t most_tiles =
            std::max<std::int64_t>(a_floats(device) / (cut.k_block * cut.rows), 1);
        const std::int64_t first = ceil_div(cut.tiles, most_tiles);
        const std::int64_t last = std::min(cut.tiles, first + 7);
        const std::int64_t blocks = ceil_div(k, cut.k_block);
        const std::int64_t units = std::max(device.compute_units, 1);
        double best = 1e300;
        Cut found = cut;
        for (cut.parts = 1; cut.parts <= std::min(blocks, 4 * units); ++cut.parts) {
            cut.k_part = ceil_div(blocks, cut.parts) * cut.k_block;
            if (ceil_div(k, cut.k_part) != cut.parts) continue;
            for (std::int64_t r = first; r <= last; ++r) {
                cut.row_tiles = ceil_div(cut.tiles, r);
                for (std::int64_t c = 1; c <= std::min<std::int64_t>(cut.panels, 16); ++c) {
                    cut.column_panels = ceil_div(cut.panels, c);
                    const double now = cycles(g, cut, units);
                    if (now < best) best = now, found = cut;
                }
            }
        }
        return found;
    }
};

}  // namespace

void add_cache_blocked(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<CacheBlocked>(op));
}

}  // namespace dlprim::matmul
