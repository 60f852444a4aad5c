// SPDX-License-Identifier: MIT
// depth_taps.reference and depth_taps_backward.reference: the engines of OpenCL devices
// (kernels/conv2d/depth_taps_reference.cl).
#include "engine/element_types.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/volume/depth_taps.hpp"

namespace dlprim::conv2d {

namespace {

constexpr const char* source = "conv2d/depth_taps_reference.cl";

class Reference : public DepthTapsEngine {
  public:
    explicit Reference(bool is_backward) : DepthTapsEngine(is_backward, false) {}
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const DepthTaps t(problem);
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return std::make_unique<KernelLaunch>();
        KernelCall call(context.build({source, kernel_source(source), element_options(dtype)}),
                        backward() ? "depth_taps_backward" : "depth_taps",
                        line_range(context.traits(), count));
        call.tensor(backward() ? "y" : "x", 0, size_of(dtype))
            .tensor(backward() ? "x" : "y", 1, size_of(dtype));
        call.scalar("count", count).scalar("plane", t.plane);
        call.sizes({{"channels", t.channels},
                    {"depth", t.depth},
                    {"out", t.out},
                    {"taps", t.kernel},
                    {"stride", t.stride},
                    {"pad", t.pad},
                    {"dilate", t.dilate}});
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_depth_taps_reference_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>(false));
    engines.add(std::make_unique<Reference>(true));
}

}  // namespace dlprim::conv2d
