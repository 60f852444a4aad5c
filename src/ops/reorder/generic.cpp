// SPDX-License-Identifier: MIT
// reorder.generic: layout conversion on any OpenCL device. GPUs move tiles through local memory.
// CPUs, and devices with small work-groups, use single work-items (kernels/reorder/generic.cl).
#include "base/text.hpp"
#include "ops/reorder/operator.hpp"
#include "ops/reorder/tile.hpp"

namespace dlprim::reorder {

namespace {

// In images of one pixel both steps of a plain side are 1. With `one_step` a text has at most one
// of them as a constant, so that these images need no program of their own.
std::string common_options(const Problem& problem, const Side& x, const Side& y, bool one_step) {
    const char* const types[] = {"uchar", "ushort", "", "uint", "", "", "", "ulong"};
    std::string options = cat("-DT=", types[size_of(problem.inputs[0].dtype) - 1]);
    const auto step = [&](const char* macro, const char* argument, std::int64_t value) {
        options += value == 1 ? cat(" -D", macro, "=1") : cat(" -D", macro, "=", argument);
    };
    const auto lane_step = [&](const Side& side) {
        return one_step && side.pixel_step == 1 ? 0 : side.lane_step;
    };
    step("X_LANE", "x_lane", lane_step(x));
    step("X_PIXEL", "x_pixel", x.pixel_step);
    step("Y_LANE", "y_lane", lane_step(y));
    step("Y_PIXEL", "y_pixel", y.pixel_step);
    return options;
}

ProgramSource source_with(std::string options) {
    return {"reorder/generic.cl", kernel_source("reorder/generic.cl"), std::move(options)};
}

/// Sets the arguments that both kernels have.
void set_sides(KernelCall& call, const Problem& problem, const Side& x, const Side& y) {
    const Shape& shape = problem.inputs[0].shape;
    const std::size_t bytes = size_of(problem.inputs[0].dtype);
    call.tensor("x", 0, bytes).tensor("y", 1, bytes);
    const auto count = [&](const char* name, std::int64_t value) {
        call.scalar(name, static_cast<std::int32_t>(value));
    };
    count("channels", shape[1]);
    count("y_channels", y.channels);
    count("pixels", shape[2] * shape[3]);
    count("x_block", x.block);
    count("y_block", y.block);
    call.scalar("x_image", x.image).scalar("y_image", y.image);
    call.scalar("x_block_step", x.block_step).scalar("y_block_step", y.block_step);
    call.scalar("x_lane", x.lane_step).scalar("y_lane", y.lane_step);
    call.scalar("x_pixel", x.pixel_step).scalar("y_pixel", y.pixel_step);
}

/// An upper bound of the offsets of a tile's elements from its first one, in x and y.
std::int64_t reach(const Tile& tile, const Side& x, const Side& y) {
    return std::max(tile.channels * x.lane_step + tile.pixels * x.pixel_step,
                    tile.channels * y.lane_step + tile.pixels * y.pixel_step);
}

KernelCall tiles_call(ContextImpl& context, const Problem& problem, const Tile& tile) {
    const Side x = side_of(problem.inputs[0]), y = side_of(problem.outputs[0]);
    const Shape& shape = problem.inputs[0].shape;
    const std::int64_t channel_tiles = (y.channels + tile.channels - 1) / tile.channels;
    const std::int64_t pixel_tiles = (shape[2] * shape[3] + tile.pixels - 1) / tile.pixels;
    // Images of one pixel count as contiguous along channels in every layout.
    const auto along = [](const Side& side) { return side.lane_step == 1 ? 0 : 1; };
    const std::string options =
        cat(common_options(problem, x, y, false), " -DCHANNELS=", tile.channels,
            " -DPIXELS=", tile.pixels, " -DPITCH=", tile.pitch, " -DGROUP=", tile.group,
            " -DX_ALONG=", along(x), " -DY_ALONG=", along(y),
            " -DOFFSET_T=", count_type(static_cast<std::uint64_t>(reach(tile, x, y))));
    const NDRange range{2,
                        {static_cast<std::size_t>(channel_tiles * pixel_tiles * tile.group),
                         static_cast<std::size_t>(shape[0]), 1},
                        {static_cast<std::size_t>(tile.group), 1, 1}};
    KernelCall call(context.build(source_with(options)), "reorder_tiles", range);
    set_sides(call, problem, x, y);
    call.scalar("channel_tiles", static_cast<std::int32_t>(channel_tiles));
    return call;
}

KernelCall rows_call(ContextImpl& context, const Problem& problem) {
    const Side x = side_of(problem.inputs[0]), y = side_of(problem.outputs[0]);
    const Shape& shape = problem.inputs[0].shape;
    const std::int64_t pixels = shape[2] * shape[3], block = common_block(problem);
    const std::int64_t blocks = (y.channels + block - 1) / block;
    const std::int64_t segment = std::clamp<std::int64_t>(pixels, 1, 4096);
    const std::int64_t segments = (pixels + segment - 1) / segment;
    const std::string options = cat(common_options(problem, x, y, true), " -DBLOCK=", block);
    const NDRange range{
        1, {static_cast<std::size_t>(shape[0] * blocks * segments), 1, 1}, {1, 1, 1}};
    KernelCall call(context.build(source_with(options)), "reorder_rows", range);
    set_sides(call, problem, x, y);
    call.scalar("segment", static_cast<std::int32_t>(segment));
    call.scalar("segments", static_cast<std::int32_t>(segments));
    call.scalar("blocks", static_cast<std::int32_t>(blocks));
    return call;
}

class Generic : public Engine {
  public:
    Generic() : Engine("reorder.generic", type, false) {}
    std::vector<std::string> sources() const override { return {"reorder/generic.cl"}; }

    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return applicable(problem);
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return {{{problem.inputs[0].layout}, {problem.outputs[0].layout}}};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, tile_of(device, problem) ? 0.75 : 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Tile tile = tile_of(context.traits(), problem);
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(tile ? tiles_call(context, problem, tile) : rows_call(context, problem));
        return launch;
    }
};

}  // namespace

void add_generic_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Generic>());
}

}  // namespace dlprim::reorder
