// SPDX-License-Identifier: MIT
// Convolution2DBackwardData and Convolution2DBackwardFilter: shapes and gradient rules. Each of the
// three convolution operators is linear in both of its inputs, so its gradients are the other two.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"

namespace dlprim::conv2d {

namespace {

/// The convolution's options, as far as gradients need them.
struct GradientOptions {
    std::int64_t groups = 1;
    ops::IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    static constexpr auto fields() {
        return ops::option_table(ops::option<&GradientOptions::groups>("the convolution's"),
                                 ops::required<&GradientOptions::kernel>("likewise"),
                                 ops::option<&GradientOptions::stride>("likewise"),
                                 ops::option<&GradientOptions::pad>("likewise"),
                                 ops::option<&GradientOptions::dilate>("likewise"));
    }
};
struct BackwardDataOptions : GradientOptions {
    static constexpr std::string_view type = "Convolution2DBackwardData";
    ops::IntList input_shape = {};
    static constexpr auto fields() {
        return std::tuple_cat(GradientOptions::fields(),
                              ops::option_table(ops::required<&BackwardDataOptions::input_shape>(
                                  "shape of the convolution's input")));
    }
};
struct BackwardFilterOptions : GradientOptions {
    static constexpr std::string_view type = "Convolution2DBackwardFilter";
    ops::IntList weight_shape = {};
    static constexpr auto fields() {
        return std::tuple_cat(GradientOptions::fields(),
                              ops::option_table(ops::required<&BackwardFilterOptions::weight_shape>(
                                  "shape of the convolution's weight")));
    }
};

// Throws unless x, weight and dy are shapes of the same convolution.
void check_shapes(const Conv2dOptions& options, const Shape& x, const Shape& weight,
                  const Shape& dy) {
    require(x.rank() == 4 && weight.rank() == 4 && dy.rank() == 4,
            "input, weight and output gradient must have 4 dimensions, not ", x.str(), ", ",
            weight.str(), " and ", dy.str());
    const Shape wanted{x[0], weight[0], options.output_size(x[2], 0), options.output_size(x[3], 1)};
    require(dy == wanted, "output gradient is ", dy.str(), ", input ", x.str(), " and weight ",
            weight.str(), " need ", wanted.str());
    require(weight[1] * options.groups == x[1] && weight[0] % options.groups == 0 &&
                weight[2] == options.kernel[0] && weight[3] == options.kernel[1],
            "weight ", weight.str(), " does not fit input ", x.str(), " in ", options.groups,
            " groups and kernel [", options.kernel[0], ", ", options.kernel[1], "]");
}

Attrs without(Attrs attrs, const char* name) {
    attrs.erase(name);
    return attrs;
}

// Adds a Convolution2D node with these options.
ValueId add_forward(Graph& graph, const std::string& name, ValueId x, ValueId weight, Attrs attrs) {
    attrs.set("channels_out", graph.shape(weight)[0]);
    attrs.set("bias", false);
    return graph.add1(forward_type, name, {x, weight}, attrs);
}

class BackwardData : public InternalOperator<BackwardDataOptions> {
  public:
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape x(attrs.ints("input_shape"));
        check_shapes(Conv2dOptions::read(attrs), x, inputs[1].shape, inputs[0].shape);
        return {{x, inputs[0].dtype}};
    }

    bool differentiable() const override { return true; }

    void gradient(GradientContext& context) const override {
        const Node& node = context.node;
        Graph& graph = context.graph;
        const ValueId dy = node.inputs[0], weight = node.inputs[1];
        const ValueId g = context.output_gradients[0];
        context.input_gradients.assign(node.inputs.size(), no_value);
        if (g == no_value) return;
        const Attrs attrs = without(node.attrs, "input_shape");
        if (context.wanted[0])
            context.input_gradients[0] =
                add_forward(graph, node.name + "/backward_data", g, weight, attrs);
        if (context.wanted[1]) {
            Attrs filter = attrs;
            filter.set("weight_shape", graph.shape(weight).to_vector());
            context.input_gradients[1] =
                graph.add1(backward_filter_type, node.name + "/backward_filter", {g, dy}, filter);
        }
    }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        return Geometry::make(Conv2dOptions::read(attrs), outputs[0].shape, inputs[1].shape,
                              inputs[0].shape)
            .flops();
    }

    void oracle(OracleCall& call) const override {
        call.outputs[0].shape = Shape(call.attrs.ints("input_shape"));
        backward_data_oracle(Conv2dOptions::read(call.attrs), call.inputs[0], call.inputs[1],
                             call.outputs[0]);
    }
};

class BackwardFilter : public InternalOperator<BackwardFilterOptions> {
  public:
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape weight(attrs.ints("weight_shape"));
        check_shapes(Conv2dOptions::read(attrs), inputs[0].shape, weight, inputs[1].shape);
        return {{weight, inputs[0].dtype}};
    }

    bool differentiable() const override { return true; }

    void gradient(GradientContext& context) const override {
        const Node& node = context.node;
        Graph& graph = context.graph;
        const ValueId x = node.inputs[0], dy = node.inputs[1];
        const ValueId g = context.output_gradients[0];
        context.input_gradients.assign(node.inputs.size(), no_value);
        if (g == no_value) return;
        const Attrs attrs = without(node.attrs, "weight_shape");
        if (context.wanted[0]) {
            Attrs data = attrs;
            data.set("input_shape", graph.shape(x).to_vector());
            context.input_gradients[0] =
                graph.add1(backward_data_type, node.name + "/backward_data", {dy, g}, data);
        }
        if (context.wanted[1])
            context.input_gradients[1] =
                add_forward(graph, node.name + "/backward_output", x, g, attrs);
    }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        return Geometry::make(Conv2dOptions::read(attrs), inputs[0].shape, outputs[0].shape,
                              inputs[1].shape)
            .flops();
    }

    void oracle(OracleCall& call) const override {
        call.outputs[0].shape = Shape(call.attrs.ints("weight_shape"));
        backward_filter_oracle(Conv2dOptions::read(call.attrs), call.inputs[0], call.inputs[1],
                               call.outputs[0]);
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward_data() {
    return std::make_unique<BackwardData>();
}
std::unique_ptr<Operator> make_backward_filter() {
    return std::make_unique<BackwardFilter>();
}

}  // namespace dlprim::conv2d
