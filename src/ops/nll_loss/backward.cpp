// SPDX-License-Identifier: MIT
// NLLLossBackward: the gradient of NLLLoss from the total weight that its forward call returned.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/nll_loss/operator.hpp"

namespace dlprim::nll_loss {

namespace {

/// The labels and, if there are any, the classes' weights, in shapes that broadcast over the input.
std::vector<ValueId> spread_labels(Graph& graph, const std::string& at, const Options& options,
                                   ValueId label, ValueId weight) {
    std::vector<ValueId> values{graph.reshape(at + "/label", label, options.label_kept)};
    if (weight != no_value)
        values.push_back(
            graph.reshape(at + "/weight", weight,
                          channel_shape(graph.shape(weight)[0], options.label_kept.rank())));
    return values;
}

/// "index(1) == x1 ? VALUE : 0"; labels that do not count are left out, of which p0 is the number.
std::string at_labels(const Options& options, const std::string& value) {
    const bool all = options.ignore_index == Options::no_label;
    return cat("index(1) == x1", all ? "" : " && x1 != p0", " ? ", value, " : 0");
}

/// Inputs: dy, the labels, their total weight [1], and the weight of each class where there is one.
/// Output: the gradient of NLLLoss's input.
class NLLLossBackward final : public DeclaredOperator<ops::NLLLossBackward> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 4; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape shape = input_shape(attrs, inputs[1].shape);
        const Options options = options_of(attrs, shape);
        require(is_float(inputs[0].dtype), "dy has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        require(inputs[0].shape.numel() == options.output().numel(), "dy has shape ",
                inputs[0].shape, ", labels of shape ", inputs[1].shape, " need ", options.output());
        require(inputs[2].shape.numel() == 1, "the total weight has shape ", inputs[2].shape,
                ", it is one number");
        require(inputs.size() < 4 || inputs[3].shape == Shape{shape[1]},
                "the classes' weights have shape ", inputs.back().shape, ", classes is ", shape[1]);
        return {{shape, inputs[0].dtype}};
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Shape shape = graph.shape(node.outputs[0]);
        const Options options = options_of(node.attrs, shape);
        const Shape flow = options.reduce == Reduce::none ? options.label_kept : Shape{1};
        std::vector<ValueId> inputs{graph.reshape(node.name + "/dy", node.inputs[0], flow)};
        const ValueId weight = node.inputs.size() > 3 ? node.inputs[3] : no_value;
        for (const ValueId value : spread_labels(graph, node.name, options, node.inputs[1], weight))
            inputs.push_back(value);
        std::string value = inputs.size() > 2 ? "-x0 * x2" : "-x0";
        if (options.reduce == Reduce::mean) {
            value += cat(" / x", inputs.size());
            inputs.push_back(graph.reshape(node.name + "/total", node.inputs[2], Shape{1}));
        }
        const std::string code = "y0 = " + at_labels(options, value);
        const Doubles ignored{static_cast<double>(options.ignore_index)};
        outputs = {
            pointwise_over(graph, node.name, code, inputs, scalars_of(code, ignored), shape)[0]};
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &label = call.inputs[1];
        const Shape shape = input_shape(call.attrs, label.shape);
        const Options options = options_of(call.attrs, shape);
        HostArray& dx = make_array(call.outputs, 0, shape, dy.dtype);
        for_each_position(shape, [&](const std::vector<std::int64_t>& index, std::size_t at) {
            const std::size_t from = broadcast_offset(options.label_kept, index);
            const double wanted = label.data[from];
            if (static_cast<double>(index[1]) != wanted ||
                wanted == static_cast<double>(options.ignore_index))
                return;
            double factor = call.inputs.size() > 3
                                ? call.inputs[3].data[static_cast<std::size_t>(index[1])]
                                : 1;
            if (options.reduce == Reduce::mean) factor /= call.inputs[2].data[0];
            dx.data[at] = -dy.data[options.reduce == Reduce::none ? from : 0] * factor;
        });
    }

  private:
    static Shape input_shape(const Attrs& attrs, const Shape& label) {
        Ints dims = label.to_vector();
        require(!dims.empty(), "labels are a single number; they have a shape of [N, ...]");
        dims.insert(dims.begin() + 1, attrs.integer("classes"));
        return Shape(dims);
    }
    static Options options_of(const Attrs& attrs, const Shape& shape) {
        Attrs all = attrs;
        all.set("return_weight", false);
        return Options(all, shape);
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<NLLLossBackward>();
}

}  // namespace dlprim::nll_loss
