// SPDX-License-Identifier: MIT
// reorder.generic: layout conversion on any OpenCL device: through tiles in local memory on GPUs,
// by single work-items on CPUs and where work-groups are small (kernels/reorder/generic.cl).
#include "base/text.hpp"
#include "ops/reorder/sides.hpp"

namespace dlprim::reorder {

namespace {

class Generic : public Engine {
  public:
    std::string_view name() const override { return "reorder.generic"; }
    std::string_view op() const override { return type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override {
        return {"reorder/generic.cl", "common/repeat.clh"};
    }

    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return applicable(problem);
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return {{{problem.inputs[0].layout}, {problem.outputs[0].layout}}};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Side x = side_of(problem.inputs[0]), y = side_of(problem.outputs[0]);
        const Shape& shape = problem.inputs[0].shape;
        const std::int64_t pixels = shape[2] * shape[3], block = common_block(problem);
        const std::size_t bytes = size_of(problem.inputs[0].dtype);
        int rows = 8;
        while (rows > 1 && 32u * static_cast<unsigned>(rows) > device.max_work_group) rows /= 2;
        const bool tiles = !device.wide_vectors &&
                           32u * static_cast<unsigned>(rows) <= device.max_work_group &&
                           device.local_bytes >= 32 * 33 * bytes;

        const char* const types[] = {"uchar", "ushort", "", "uint", "", "", "", "ulong"};
        std::string options = cat("-DT=", types[bytes - 1], " -DBLOCK=", block, " -DROWS=", rows);
        const auto step = [&](const char* macro, const char* argument, std::int64_t value) {
            options += value == 1 ? cat(" -D", macro, "=1") : cat(" -D", macro, "=", argument);
        };
        step("X_LANE", "x_lane", x.lane_step);
        step("X_PIXEL", "x_pixel", x.pixel_step);
        step("Y_LANE", "y_lane", y.lane_step);
        step("Y_PIXEL", "y_pixel", y.pixel_step);
        const auto program =
            context.build({"reorder/generic.cl", kernel_source("reorder/generic.cl"), options});

        NDRange range;
        const std::int64_t blocks = (y.channels + block - 1) / block;
        const std::int64_t segment = std::clamp<std::int64_t>(pixels, 1, 4096);
        const std::int64_t segments = (pixels + segment - 1) / segment;
        if (tiles) {
            range.dims = 3;
            range.global = {static_cast<std::size_t>((pixels + 31) / 32 * 32),
                            static_cast<std::size_t>((y.channels + 31) / 32 * rows),
                            static_cast<std::size_t>(shape[0])};
            range.local = {32, static_cast<std::size_t>(rows), 1};
        } else {
            range.global[0] = static_cast<std::size_t>(shape[0] * blocks * segments);
            range.local[0] = 1;
        }
        KernelCall call(program, tiles ? "reorder_tiles" : "reorder_rows", range);
        call.tensor("x", 0, bytes).tensor("y", 1, bytes);
        const auto count = [&](const char* name, std::int64_t value) {
            call.scalar(name, static_cast<std::int32_t>(value));
        };
        count("channels", shape[1]);
        count("y_channels", y.channels);
        count("pixels", pixels);
        count("x_block", x.block);
        count("y_block", y.block);
        call.scalar("x_image", x.image).scalar("y_image", y.image);
        call.scalar("x_block_step", x.block_step).scalar("y_block_step", y.block_step);
        call.scalar("x_lane", x.lane_step).scalar("y_lane", y.lane_step);
        call.scalar("x_pixel", x.pixel_step).scalar("y_pixel", y.pixel_step);
        if (tiles) {
            count("x_along", x.pixel_step == 1);
            count("y_along", y.pixel_step == 1);
        } else {
            count("segment", segment);
            count("segments", segments);
            count("blocks", blocks);
        }
        call.check();
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        return launch;
    }
};

}  // namespace

void add_generic_engine(EngineRegistry& registry) {
    registry.add(std::make_unique<Generic>());
}

}  // namespace dlprim::reorder
