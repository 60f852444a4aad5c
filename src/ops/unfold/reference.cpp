// SPDX-License-Identifier: MIT
// unfold.reference and fold.reference: the engines of OpenCL devices (kernels/unfold/reference.cl).
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "ops/unfold/windows.hpp"

#include <algorithm>

namespace dlprim::unfold {

namespace {

constexpr const char* source = "unfold/reference.cl";

class Reference : public Base {
  public:
    explicit Reference(std::string_view op) : Base(op, false) {}
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return std::make_unique<KernelLaunch>();
        const DType dtype = problem.inputs[0].dtype;
        // Integers of 32 bits are divided faster. No index is beyond the elements of a tensor and
        // the padding of images.
        const bool narrow =
            std::max(count, problem.inputs[0].shape.numel()) < (std::int64_t(1) << 30);
        const std::string options =
            cat("-DINDEX=", narrow ? "int" : "long", element_options(dtype));
        KernelCall call(context.build({source, kernel_source(source), options}),
                        folds() ? "fold" : "unfold", line_range(context.traits(), count));
        call.tensor(folds() ? "columns" : "images", 0, size_of(dtype));
        call.tensor(folds() ? "images" : "columns", 1, size_of(dtype));
        const Windows all = windows(problem);
        const auto scalar = [&](const std::string& name, std::int64_t value) {
            if (narrow)
                call.scalar(name, static_cast<std::int32_t>(value));
            else
                call.scalar(name, value);
        };
        const char* const suffixes[] = {"h", "w"};
        for (std::size_t d = 0; d < 2; ++d) {
            const Axis& axis = all.axes[d];
            const std::pair<const char*, std::int64_t> scalars[] = {
                {"size_", axis.size}, {"kernel_", axis.kernel}, {"stride_", axis.stride},
                {"pad_", axis.pad},   {"dilate_", axis.dilate}, {"windows_", axis.windows}};
            for (const auto& [name, value] : scalars) scalar(cat(name, suffixes[d]), value);
        }
        scalar("count", count);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_reference_engines(EngineRegistry& engines) {
    for (const std::string_view op : {unfold_type, fold_type})
        engines.add(std::make_unique<Reference>(op));
}

}  // namespace dlprim::unfold
