// SPDX-License-Identifier: MIT
// conv2d_backward_filter.implicit_gemm: the filter gradient on GPUs over plain images, as a matrix
// product whose two sides are both gathered (kernels/conv2d/implicit_gemm_filter.cl). Long sums are
// divided between work-groups, which write parts to the workspace. The parts are added in order.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/implicit_gemm_filter.cl";

class ImplicitGemmFilter : public ConvolutionEngine {
  public:
    ImplicitGemmFilter() : ConvolutionEngine(backward_filter_type, "implicit_gemm") {}

    std::vector<std::string> sources() const override { return {source_path, parts_sum_source}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return implicit_gemm_verdict(device, problem);
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, parts(problem, tuning).count);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        // The kernel gathers both sides. On a GPU this takes longer than reading the packed weights
        // for which the tile model was made: 1.3 to 2 times as long on an H200, over the layers of
        // twelve networks.
        const double gathering = device.wide_vectors ? 1.0 : 1.4;
        const double seconds =
            gathering * split_gemm_seconds(device, gemm_tile(tuning).shape(), size_of(problem),
                                           parts(problem, tuning).count, output_bytes(problem)) +
            device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // A sum of 16384 products in one register has a relative error of about 3e-6.
        return choose_gemm(device, gemm_tiles(device), size_of(problem), 256, 16384,
                           output_bytes(problem), 256e6);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return gemm_tune_space(gemm_tiles(device), default_tuning(device, problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const GemmTile tile = gemm_tile(tuning);
        const Geometry g = flattened(problem);
        const Parts part = parts(problem, tuning);
        const bool split = part.count > 1;
        const std::string options = gemm_tile_options(context.traits(), tile) +
                                    define("KERNEL_H", g.kh) + define("KERNEL_W", g.kw) +
                                    define("CHANNEL_QUADS", g.group_in() % 4 == 0) +
                                    image_options(problem, split);
        const auto program =
            context.build({source_path,
                           split ? with_epilogue(kernel_source(source_path), Epilogue{})
                                 : with_epilogue(kernel_source(source_path), problem),
                           options});
        const GemmSize size = size_of(problem);
        const std::int64_t tiles_m = ceil_div(size.rows, tile.bm());
        const std::int64_t tiles_n = ceil_div(size.columns, tile.bn());
        KernelCall call(program, "implicit_gemm_filter",
                        group_range(tiles_m * tiles_n * g.groups * part.count, tile.threads()));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0, dlprim::size_of(problem.inputs[0].dtype))
            .tensor("dy", 1, dlprim::size_of(problem.inputs[1].dtype))
            .tensor("dweight", split ? result + 1 : result);
        call.sizes({{"pixels", size.depth},
                    {"part_pixels", part.pixels},
                    {"groups", g.groups},
                    {"group_in", g.group_in()},
                    {"group_out", g.group_out()},
                    {"h", g.h},
                    {"w", g.w},
                    {"oh", g.oh},
                    {"ow", g.ow},
                    {"sh", g.sh},
                    {"sw", g.sw},
                    {"pt", g.pt},
                    {"pl", g.pl},
                    {"dh", g.dh},
                    {"dw", g.dw},
                    {"tiles_m", tiles_m},
                    {"tiles_n", tiles_n}});
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem);
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        if (split) add_split_sum(*launch, context, problem, part.count);
        return launch;
    }

  private:
    struct Parts {
        std::int64_t count, pixels;
    };
    static Parts parts(const Problem& problem, const Tuning& tuning) {
        const std::int64_t depth = size_of(problem).depth;
        const std::int64_t splits = std::max<std::int64_t>(tuning.at("splits"), 1);
        const std::int64_t pixels =
            std::max(gemm_depth, ceil_div(ceil_div(depth, splits), gemm_depth) * gemm_depth);
        return {std::max<std::int64_t>(1, ceil_div(depth, pixels)), pixels};
    }
    static GemmSize size_of(const Problem& problem) {
        const Geometry g = Geometry::of(problem);
        return {g.group_out(), g.group_in() * g.kh * g.kw, g.n * g.oh * g.ow, g.groups};
    }
};

}  // namespace

void add_implicit_gemm_filter_engine(EngineRegistry& registry) {
    registry.add(std::make_unique<ImplicitGemmFilter>());
}

}  // namespace dlprim::conv2d
