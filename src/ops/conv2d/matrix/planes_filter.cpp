// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_planes (mma_planes): the filter gradient over plain images in tf32.
// Both images are first made halves with their channels last, scaled by channel
// (kernels/conv2d/planes_filter.cl), and the product is that of images in 16 bits
// (stored16_filter.hpp). wgmma_split needs no such pass, but it converts a value each time that it
// reads it. For exact fp32 a channel's spread over all images is too large for one scale.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/split.hpp"
#include "ops/conv2d/matrix/stored16.hpp"
#include "ops/conv2d/matrix/stored16_filter.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/planes_filter.cl";
constexpr std::int64_t image_parts = 16, pixels_a_group = 32, channels_a_group = 64;

/// Where things lie in the workspace, in bytes.
struct Room {
    std::int64_t x, dy, x_largest, dy_largest, parts, bytes;

    Room(const Problem& problem, const Tuning& tuning) {
        const auto take = [this](std::int64_t count) {
            const std::int64_t at = bytes;
            bytes += ceil_div(count, std::int64_t{256}) * 256;
            return at;
        };
        bytes = 0;
        x = take(2 * problem.inputs[0].shape.numel());
        dy = take(2 * problem.inputs[1].shape.numel());
        x_largest = take(4 * image_parts * problem.inputs[0].shape[1]);
        dy_largest = take(4 * image_parts * problem.inputs[1].shape[1]);
        parts = take(4 * problem.outputs[0].shape.numel() *
                     FilterParts(Geometry::of(problem), tuning).count);
    }
};

class PlanesFilterEngine : public ConvolutionEngine {
  public:
    explicit PlanesFilterEngine(MatrixUnit unit)
        : ConvolutionEngine(backward_filter_type, cat(name_of(unit), "_planes")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        return {source_path, stored16_filter_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = split_verdict(unit_, device, problem); !verdict) return verdict;
        if (split_products(problem) != 1)
            return Verdict::no(
                "it computes in tf32 alone: a channel has one scale over all images");
        for (const std::size_t i : {0, 1})
            if (problem.inputs[i].shape[1] % 8 != 0)
                return Verdict::no(cat("it needs numbers of channels that are multiples of 8, not ",
                                       problem.inputs[i].shape[1]));
        return stored16_tiles_verdict(stored16_filter_tiles(unit_, device));
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return static_cast<std::uint64_t>(Room(problem, tuning).bytes);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const std::int64_t count = FilterParts(g, tuning).count;
        // Each image is read twice, and written in halves.
        const double bytes = 10.0 * static_cast<double>(problem.inputs[0].shape.numel() +
                                                        problem.inputs[1].shape.numel());
        const Stored16Tile tile = named_tile(stored16_filter_tiles(unit_, device), tuning);
        return bytes / (std::max(device.gbytes_per_s, 1.0) * 0.7e9) +
               stored16_seconds(device, tile, stored16_filter_size(g), count) +
               parts_seconds(device, output_bytes(problem), std::max<std::int64_t>(count, 2)) +
               5 * device.launch_us * 1e-6;
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        return choose_stored16(device, stored16_filter_tiles(unit_, device),
                               stored16_filter_size(g), output_bytes(problem), 256e6,
                               g.kh * g.kw > 1);
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        return stored16_tune_space(stored16_filter_tiles(unit_, device), stored16_filter_size(g),
                                   default_tuning(device, problem), g.kh * g.kw > 1);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Room room(problem, tuning);
        const int workspace = static_cast<int>(problem.inputs.size()) + 1;
        auto launch = std::make_unique<KernelLaunch>();
        const auto program =
            context.build({source_path, with_epilogue(kernel_source(source_path), problem.epilogue),
                           define("PARTS", image_parts)});
        add_halves(*launch, program, problem, 0, room.x_largest, room.x);
        add_halves(*launch, program, problem, 1, room.dy_largest, room.dy);
        const auto at = [&](KernelCall& call, std::string_view name, std::int64_t place,
                            std::size_t size) {
            call.tensor_at(name, workspace, static_cast<std::uint64_t>(place), size);
        };
        add_stored16_filter(*launch, context, problem, tuning,
                            {unit_, 1, false, [&](KernelCall& call) {
                                 at(call, "x", room.x, 2);
                                 at(call, "dy", room.dy, 2);
                                 at(call, "dweight", room.parts, 4);
                             }});
        const Geometry g = Geometry::of(problem);
        const std::int64_t count = problem.outputs[0].shape.numel();
        KernelCall sum(program, "filter_sum",
                       group_range(ceil_div(count, std::int64_t{32}), stored16_items));
        at(sum, "parts", room.parts, 4);
        at(sum, "x_largest", room.x_largest, 4);
        at(sum, "dy_largest", room.dy_largest, 4);
        sum.tensor("dweight", workspace - 1);
        sum.sizes({{"count", count},
                   {"splits", FilterParts(g, tuning).count},
                   {"taps", g.kh * g.kw},
                   {"channels", g.in}});
        bind_epilogue(sum, problem.epilogue);
        launch->add(std::move(sum));
        return launch;
    }

  private:
    /// The halves of an input and the largest magnitudes of its channels, at places of the
    /// workspace.
    static void add_halves(KernelLaunch& launch, const std::shared_ptr<Program>& program,
                           const Problem& problem, int input, std::int64_t largest_at,
                           std::int64_t halves_at) {
        const Shape& shape = problem.inputs[static_cast<std::size_t>(input)].shape;
        const std::int64_t channels = shape[1], plane = shape[2] * shape[3],
                           pixels = shape[0] * plane;
        const int workspace = static_cast<int>(problem.inputs.size()) + 1;
        const auto range = [&](std::int64_t groups, std::int64_t down) {
            NDRange made = group_range(groups, stored16_items);
            made.dims = 2;
            made.global[1] = static_cast<std::size_t>(down);
            made.local[1] = 1;
            return made;
        };
        KernelCall largest(program, "filter_largest", range(image_parts, channels));
        largest.tensor("x", input);
        largest.tensor_at("largest", workspace, static_cast<std::uint64_t>(largest_at), 4);
        largest.sizes({{"images", shape[0]}, {"channels", channels}, {"plane", plane}});
        launch.add(std::move(largest));
        KernelCall halves(
            program, "filter_halves",
            range(ceil_div(pixels, pixels_a_group), ceil_div(channels, channels_a_group)));
        halves.tensor("x", input);
        halves.tensor_at("largest", workspace, static_cast<std::uint64_t>(largest_at), 4);
        halves.tensor_at("halves", workspace, static_cast<std::uint64_t>(halves_at), 2);
        halves.sizes({{"channels", channels}, {"plane", plane}, {"pixels", pixels}});
        launch.add(std::move(halves));
    }

    MatrixUnit unit_;
};

}  // namespace

void add_planes_filter_engine(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        registry.add(std::make_unique<PlanesFilterEngine>(unit));
}

}  // namespace dlprim::conv2d
