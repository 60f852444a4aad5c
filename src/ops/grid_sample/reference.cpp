// SPDX-License-Identifier: MIT
// grid_sample.reference and those of its gradients: the engines of OpenCL devices
// (kernels/grid_sample/reference.cl).
#include "base/text.hpp"
#include "ops/grid_sample/engines.hpp"

namespace dlprim::grid_sample {

namespace {

constexpr const char* source = "grid_sample/reference.cl";

class Reference : public Base {
  public:
    explicit Reference(Part part) : Base(part, false) {}
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Options o(problem.attrs);
        const Sizes s = sizes(problem);
        // A work-item of the images' gradient owns a plane.
        const std::int64_t count = part() == Part::forward ? problem.outputs[0].shape.numel()
                                   : part() == Part::data  ? s.n * s.c
                                                           : s.n * s.oh * s.ow;
        if (count == 0) return std::make_unique<KernelLaunch>();
        const std::size_t bytes = size_of(problem.inputs[0].dtype);
        const std::string options =
            cat("-DMODE=", static_cast<int>(o.mode), " -DPADDING=", static_cast<int>(o.padding),
                " -DALIGN=", o.align_corners ? 1 : 0, element_options(problem.inputs[0].dtype));
        const char* const kernels[] = {"grid_sample", "grid_sample_backward_data",
                                       "grid_sample_backward_grid"};
        KernelCall call(context.build({source, kernel_source(source), options}),
                        kernels[static_cast<int>(part())], line_range(context.traits(), count));
        int operand = 0;
        for (const char* name : names(part())) call.tensor(name, operand++, bytes);
        const std::pair<const char*, std::int64_t> all[] = {
            {"channels", s.c}, {"h", s.h}, {"w", s.w}, {"oh", s.oh}, {"ow", s.ow}};
        for (const auto& [name, value] : all) call.scalar(name, static_cast<std::int32_t>(value));
        call.scalar("count", count);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    static std::vector<const char*> names(Part part) {
        if (part == Part::forward) return {"x", "grid", "y"};
        if (part == Part::data) return {"dy", "grid", "dx"};
        return {"dy", "x", "grid", "dgrid"};
    }
};

}  // namespace

void add_reference_engines(EngineRegistry& engines) {
    for (const auto part : {Base::Part::forward, Base::Part::data, Base::Part::grid})
        engines.add(std::make_unique<Reference>(part));
}

}  // namespace dlprim::grid_sample
