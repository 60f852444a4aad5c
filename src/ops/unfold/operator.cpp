// SPDX-License-Identifier: MIT
// Unfold and Fold as operators: options, shapes, gradient rules.
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "graph/declared_operator.hpp"
#include "ops/unfold/windows.hpp"

namespace dlprim::unfold {

namespace {

/// An option's values for height and width.
std::array<std::int64_t, 2> pair_of(const Attrs& attrs, std::string_view name) {
    const Ints values = attrs.ints(name);
    require(values.size() == 1 || values.size() == 2, name, " must be one number or two, not ",
            values.size());
    return {values.front(), values.back()};
}

Windows windows_of(const Attrs& attrs, const std::array<std::int64_t, 2>& sizes) {
    const auto kernel = pair_of(attrs, "kernel"), stride = pair_of(attrs, "stride"),
               pad = pair_of(attrs, "pad"), dilate = pair_of(attrs, "dilate");
    Windows windows;
    for (std::size_t d = 0; d < 2; ++d) {
        const std::int64_t span = (kernel[d] - 1) * dilate[d] + 1, padded = sizes[d] + 2 * pad[d];
        require(span <= padded, "the window takes ", span, d == 0 ? " rows" : " columns",
                " of pixels, and the images have ", padded, " with their padding");
        windows.axes[d] = {sizes[d], kernel[d], stride[d],
                           pad[d],   dilate[d], (padded - span) / stride[d] + 1};
    }
    return windows;
}

void require_float(const TensorSpec& x) {
    require(is_float(x.dtype), "the input must be of a float type, not ", name_of(x.dtype));
}

class Unfold : public DeclaredOperator<ops::Unfold> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require_float(inputs[0]);
        return {{windows_of_images(attrs, inputs[0].shape).columns(), inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        const Shape& images = context.graph.shape(node.inputs[0]);
        Attrs attrs = node.attrs;
        attrs.set("output", Ints{images[2], images[3]});
        context.input_gradients[0] =
            context.graph.add1(std::string(fold_type), node.name + "/backward", {dy}, attrs);
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        unfold_oracle(windows_of_images(call.attrs, x.shape), x, call.outputs[0]);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        fold_oracle(windows_of_images(call.attrs, call.inputs[0].shape), call.output_gradients[0],
                    call.input_gradients[0]);
    }
};

class Fold : public DeclaredOperator<ops::Fold> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require_float(inputs[0]);
        return {{windows_of_columns(attrs, inputs[0].shape).images(), inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        Attrs attrs;
        for (const char* name : {"kernel", "stride", "pad", "dilate"})
            attrs.set(name, node.attrs.ints(name));
        context.input_gradients[0] =
            context.graph.add1(std::string(unfold_type), node.name + "/backward", {dy}, attrs);
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        fold_oracle(windows_of_columns(call.attrs, x.shape), x, call.outputs[0]);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        unfold_oracle(windows_of_columns(call.attrs, call.inputs[0].shape),
                      call.output_gradients[0], call.input_gradients[0]);
    }
};

}  // namespace

Windows windows_of_images(const Attrs& attrs, const Shape& images) {
    require(images.rank() == 4, "images ", images, " are not [N, C, H, W]");
    Windows windows = windows_of(attrs, {images[2], images[3]});
    windows.n = images[0];
    windows.c = images[1];
    return windows;
}

Windows windows_of_columns(const Attrs& attrs, const Shape& columns) {
    require(columns.rank() == 3, "columns ", columns, " are not [N, C kernel kernel, windows]");
    Windows windows = windows_of(attrs, pair_of(attrs, "output"));
    windows.n = columns[0];
    windows.c = columns[1] / windows.taps();
    require(windows.columns() == columns, "columns ", columns, " are not [N, C ", windows.taps(),
            ", ", windows.windows(), "], as images of ", windows.axes[0].size, " x ",
            windows.axes[1].size, " pixels have ", windows.windows(), " windows of ",
            windows.taps());
    return windows;
}

Verdict Base::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    const DType dtype = problem.inputs[0].dtype;
    if (dtype != DType::f32 && dtype != DType::f64)
        return Verdict::no("it supports float and double tensors only");
    return one_float_type(device, problem, 1, 1);
}

void register_unfold(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Unfold>());
    operators.add(std::make_unique<Fold>());
    add_host_engines(engines);
    add_reference_engines(engines);
}

}  // namespace dlprim::unfold
