// SPDX-License-Identifier: MIT
// pooling_nd.reference, adaptive_pooling.reference and those of their gradients: the engines of
// OpenCL devices, in all float types. kernels/pooling_nd/reference.cl has both kernels.
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "ops/pooling_nd/engines.hpp"

#include <algorithm>

namespace dlprim::pooling_nd {

namespace {

constexpr const char* source = "pooling_nd/reference.cl";

class Reference : public Base {
  public:
    Reference(bool adaptive, bool backward) : Base("reference", adaptive, backward) {}
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Windows w = windows(problem);
        const DType dtype = problem.inputs[0].dtype;
        auto launch = std::make_unique<KernelLaunch>();
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return launch;
        const std::string options =
            cat("-DAVERAGE=", w.average ? 1 : 0, " -DADAPTIVE=", w.adaptive ? 1 : 0,
                " -DINDEX=", w.indices ? 1 : 0, " -DINCLUDE=", w.count_include_pad ? 1 : 0,
                element_options(dtype));
        KernelCall call(context.build({source, kernel_source(source), options}),
                        backward() ? "pool_backward" : "pool_forward",
                        line_range(context.traits(), count));
        if (backward()) {
            const bool indices = problem.inputs.size() > 1;
            call.tensor("dy", 0, size_of(dtype))
                .tensor("idx", indices ? 1 : 0, indices ? size_of(index_type) : size_of(dtype))
                .tensor("dx", indices ? 2 : 1, size_of(dtype));
        } else {
            call.tensor("x", 0, size_of(dtype)).tensor("y", 1, size_of(dtype));
            call.tensor("idx", w.indices ? 2 : 1, w.indices ? size_of(index_type) : size_of(dtype));
        }
        call.scalar("count", count).scalar("divisor", static_cast<std::int32_t>(w.divisor));
        const char* const names[] = {"d", "h", "w"};
        for (std::size_t i = 0; i < 3; ++i) {
            const Axis& a = w.axes[i];
            const std::pair<const char*, std::int64_t> sizes[] = {
                {"_in", a.in},   {"_out", a.out},     {"_kernel", a.kernel}, {"_stride", a.stride},
                {"_pad", a.pad}, {"_end", a.pad_end}, {"_dilate", a.dilate}};
            for (const auto& [name, value] : sizes)
                call.scalar(cat(names[i], name), static_cast<std::int32_t>(value));
        }
        call.check();
        launch->add(std::move(call));
        return launch;
    }
};

/// The first part of an engine's name.
const char* room_of(bool adaptive, bool backward) {
    if (adaptive) return backward ? "adaptive_pooling_backward." : "adaptive_pooling.";
    return backward ? "pooling_nd_backward." : "pooling_nd.";
}

const char* type_of(bool adaptive, bool backward) {
    if (adaptive) return backward ? adaptive_backward_type : adaptive_type;
    return backward ? pooling_backward_type : pooling_type;
}

}  // namespace

Base::Base(const std::string& way, bool adaptive, bool backward)
    : adaptive_(adaptive),
      backward_(backward),
      op_(type_of(adaptive, backward)),
      name_(room_of(adaptive, backward) + way) {}

Verdict Base::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    for (const auto* side : {&problem.inputs, &problem.outputs})
        if (side->size() > 1 && (*side)[1].dtype != index_type)
            return Verdict::no(cat("positions of maxima must be ", name_of(index_type), ", not ",
                                   name_of((*side)[1].dtype)));
    return one_float_type(device, problem, 1, 1);
}

double Base::estimate(const Traits& device, const Problem& problem, const Tuning&) const {
    const Windows w = windows(problem);
    double window = 1;
    for (const Axis& a : w.axes)
        window *= w.adaptive ? static_cast<double>(a.in) /
                                       static_cast<double>(std::max<std::int64_t>(a.out, 1)) +
                                   1
                             : static_cast<double>(a.kernel);
    const double steps = window * static_cast<double>(w.output.numel());
    return roofline_seconds(device, problem, 2 * steps, 0.05, 0.3);
}

Windows Base::windows(const Problem& problem) const {
    return {problem.attrs, (backward_ ? problem.outputs : problem.inputs)[0].shape, adaptive_};
}

void add_reference_engines(EngineRegistry& engines) {
    for (const bool adaptive : {false, true})
        for (const bool backward : {false, true})
            engines.add(std::make_unique<Reference>(adaptive, backward));
}

}  // namespace dlprim::pooling_nd
