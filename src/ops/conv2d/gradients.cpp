// SPDX-License-Identifier: MIT
// Convolution2DBackwardData and Convolution2DBackwardFilter: shapes and gradient rules.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"

#include <array>

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
        return ops::joined(GradientOptions::fields(),
                           ops::option_table(ops::required<&BackwardDataOptions::input_shape>(
                               "shape of the convolution's input")));
    }
};
struct BackwardFilterOptions : GradientOptions {
    static constexpr std::string_view type = "Convolution2DBackwardFilter";
    ops::IntList weight_shape = {};
    static constexpr auto fields() {
        return ops::joined(GradientOptions::fields(),
                           ops::option_table(ops::required<&BackwardFilterOptions::weight_shape>(
                               "shape of the convolution's weight")));
    }
};

/// The operator that makes a part: its type, its inputs, and the option that says the part's shape.
struct Maker {
    const char* type;
    std::array<Part, 2> inputs;
    const char* shape_option;
};
const Maker& maker_of(Part made) {
    static const Maker makers[] = {
        {backward_data_type, {Part::output, Part::weight}, "input_shape"},
        {backward_filter_type, {Part::input, Part::output}, "weight_shape"},
        {"Convolution", {Part::input, Part::weight}, nullptr}};
    return makers[static_cast<std::size_t>(made)];
}

/// Throws unless x, weight and dy are shapes of the same convolution.
void check_shapes(const Conv2dOptions& options, const Shape& x, const Shape& weight,
                  const Shape& dy) {
    require(x.rank() == 4 && weight.rank() == 4 && dy.rank() == 4,
            "input, weight and output gradient must have 4 dimensions, not ", x, ", ", weight,
            " and ", dy);
    const Shape wanted{x[0], weight[0], options.output_size(x[2], 0), options.output_size(x[3], 1)};
    require(dy == wanted, "output gradient is ", dy, ", input ", x, " and weight ", weight,
            " need ", wanted);
    require(weight[1] * options.groups == x[1] && weight[0] % options.groups == 0 &&
                weight[2] == options.kernel[0] && weight[3] == options.kernel[1],
            "weight ", weight, " does not fit input ", x, " in ", options.groups,
            " groups and kernel [", options.kernel[0], ", ", options.kernel[1], "]");
}

template <typename Options, Part made>
class Gradient : public InternalOperator<Options> {
  public:
    int min_inputs() const override { return 2; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Conv2dOptions options = Conv2dOptions::read(attrs);
        const Shape result(attrs.ints(maker_of(made).shape_option));
        const Shape &first = inputs[0].shape, &second = inputs[1].shape;
        if (made == Part::input)
            check_shapes(options, result, second, first);
        else
            check_shapes(options, first, result, second);
        return {{result, inputs[0].dtype}};
    }

    void gradient(GradientContext& context) const override { linear_gradients(context, made); }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        const Conv2dOptions options = Conv2dOptions::read(attrs);
        const Shape &first = inputs[0].shape, &second = inputs[1].shape, &result = outputs[0].shape;
        return (made == Part::input ? Geometry::make(options, result, second, first)
                                    : Geometry::make(options, first, result, second))
            .flops();
    }
};

}  // namespace

void linear_gradients(GradientContext& context, Part made) {
    const Node& node = context.node;
    Graph& graph = context.graph;
    const ValueId g = context.output_gradients[0];
    for (std::size_t i = 0; i < 2; ++i) {
        if (!context.wanted[i]) continue;
        const Part wanted = maker_of(made).inputs[i];
        const auto& [type, inputs, shape_option] = maker_of(wanted);
        const TensorSpec& of = graph.spec(node.inputs[i]);
        const Shape shape = of.shape;
        if (shape.empty()) {  // no engine has to know of images without rows
            context.input_gradients[i] =
                graph.add1("Pointwise", node.name + "/no_gradient", {},
                           {{"code", std::string("y0 = 0")},
                            {"shape", shape.to_vector()},
                            {"dtypes", Strings{std::string(name_of(of.dtype))}}});
            continue;
        }
        Attrs attrs;
        for (const char* name : {"groups", "kernel", "stride", "pad", "dilate"})
            attrs.set(name, node.attrs.at(name));
        if (wanted == Part::output)
            attrs.set("channels_out", shape[1]).set("bias", false);
        else
            attrs.set(shape_option, shape.to_vector());
        // The gradient takes the place of what the node made.
        const ValueId other = node.inputs[1 - i];
        const std::vector<ValueId> operands =
            inputs[0] == made ? std::vector{g, other} : std::vector{other, g};
        const char* const name = wanted == Part::weight             ? "/backward_filter"
                                 : wanted == Part::output && i == 1 ? "/backward_output"
                                                                    : "/backward_data";
        context.input_gradients[i] = graph.add1(type, node.name + name, operands, attrs);
    }
}

std::unique_ptr<Operator> make_backward_data() {
    return std::make_unique<Gradient<BackwardDataOptions, Part::input>>();
}
std::unique_ptr<Operator> make_backward_filter() {
    return std::make_unique<Gradient<BackwardFilterOptions, Part::weight>>();
}

}  // namespace dlprim::conv2d
