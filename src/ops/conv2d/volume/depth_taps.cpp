// SPDX-License-Identifier: MIT
// DepthTaps and its gradient as operators, which only convolutions of volumes make.
#include "ops/conv2d/volume/depth_taps.hpp"

#include "engine/element_types.hpp"
#include "graph/declared_operator.hpp"
#include "ops/conv2d/operators.hpp"

namespace dlprim::conv2d {

namespace {

/// Sizes along the depth. Kernel, stride, pad and dilation are the convolution's.
template <bool backward>
struct TapsOptions {
    static constexpr std::string_view type = backward ? taps_backward_type : taps_type;
    std::int64_t kernel = 1, stride = 1, pad = 0, dilate = 1, size = 0;
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&TapsOptions::kernel>("size of the window"),
            ops::option<&TapsOptions::stride>("its step"),
            ops::option<&TapsOptions::pad>("zeros in front"),
            ops::option<&TapsOptions::dilate>("distance between the kernel's elements"),
            ops::required<&TapsOptions::size>("of the result"));
    }
};

template <bool backward>
class Taps : public InternalOperator<TapsOptions<backward>> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& from = inputs[0].shape;
        const std::int64_t size = attrs.integer("size");
        const Shape to =
            backward ? Shape{from[0], from[2], size, from[4], from[5]}
                     : Shape{from[0], size, from[1], attrs.integer("kernel"), from[3], from[4]};
        return {{to, inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Shape& from = context.graph.shape(context.node.inputs[0]);
        Attrs attrs = context.node.attrs;
        attrs.set("size", from[backward ? 1 : 2]);
        context.input_gradients[0] =
            context.graph.add1(backward ? taps_type : taps_backward_type,
                               context.node.name + "/backward", {dy}, attrs);
    }
};

}  // namespace

DepthTaps::DepthTaps(const Attrs& attrs, const Shape& x, std::int64_t out_depth)
    : batch(x[0]),
      channels(x[1]),
      depth(x[2]),
      plane(x[3] * x[4]),
      out(out_depth),
      kernel(attrs.integer("kernel")),
      stride(attrs.integer("stride")),
      pad(attrs.integer("pad")),
      dilate(attrs.integer("dilate")) {}

DepthTaps::DepthTaps(const Problem& problem)
    : DepthTaps(problem.attrs,
                (problem.op == taps_type ? problem.inputs : problem.outputs)[0].shape,
                (problem.op == taps_type ? problem.outputs : problem.inputs)[0].shape[1]) {}

DepthTapsEngine::DepthTapsEngine(bool backward, bool on_host)
    : Engine(std::string(backward ? "depth_taps_backward." : "depth_taps.") +
                 (on_host ? "host" : "reference"),
             backward ? taps_backward_type : taps_type, on_host),
      backward_(backward) {}

Verdict DepthTapsEngine::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    return one_float_type(device, problem, 1, 1);
}

std::unique_ptr<Operator> make_depth_taps(bool backward) {
    if (backward) return std::make_unique<Taps<true>>();
    return std::make_unique<Taps<false>>();
}

}  // namespace dlprim::conv2d
