// SPDX-License-Identifier: MIT
// PoolingND, AdaptivePooling and their gradients as operators: options, shapes, gradient rules. The
// gradient of a maximum needs the positions of maxima, which are the forward node's second output.
#include "ops/pooling_nd/operators.hpp"

#include "base/text.hpp"
#include "ops/pooling_nd/windows.hpp"

namespace dlprim::pooling_nd {

namespace {

const OptionSpec mode{"mode", OptionKind::text, std::string("max"), "max or avg"};
const OptionSpec kernel{"kernel", OptionKind::integers, Ints{},
                        "window: one size, or one for each dimension of images", true};
const OptionSpec stride{"stride", OptionKind::integers, Ints{1}, "step, likewise"};
const OptionSpec pad{"pad", OptionKind::integers, Ints{0},
                     "likewise, or the pads in front of all dimensions and then those behind them"};
const OptionSpec dilate{"dilate", OptionKind::integers, Ints{1}, "max: step within the window"};
const OptionSpec count_include_pad{"count_include_pad", OptionKind::boolean, false,
                                   "avg divides by the padding, too"};
const OptionSpec ceil_mode{"ceil_mode", OptionKind::boolean, false, "output sizes round up"};
const OptionSpec divisor{"divisor_override", OptionKind::integer, std::int64_t{0},
                         "avg: divides by this, unless it is 0"};
const OptionSpec output{
    "output", OptionKind::integers, Ints{},
    "size of the result: one, or one for each dimension of images; -1 keeps the input's", true};
const OptionSpec return_indices{
    "return_indices", OptionKind::boolean, false,
    "max: a second output, the flattened position of each maximum in its image"};
const OptionSpec image_shape{"sizes", OptionKind::integers, Ints{},
                             "the shape of the forward's input", true};

Schema schema_of(bool adaptive, bool backward) {
    if (adaptive)
        return backward ? Schema{mode, output, return_indices, image_shape}
                        : Schema{mode, output, return_indices};
    return backward
               ? Schema{mode,      kernel,  stride,         pad,        dilate, count_include_pad,
                        ceil_mode, divisor, return_indices, image_shape}
               : Schema{mode,      kernel,  stride,        pad, dilate, count_include_pad,
                        ceil_mode, divisor, return_indices};
}

class Forward : public Operator {
  public:
    explicit Forward(bool adaptive) : adaptive_(adaptive), schema_(schema_of(adaptive, false)) {}
    std::string_view type() const override { return adaptive_ ? adaptive_type : pooling_type; }
    const Schema& schema() const override { return schema_; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_indices") ? 2 : 1;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        const Windows windows(attrs, inputs[0].shape, adaptive_);
        std::vector<TensorSpec> result{{windows.output, inputs[0].dtype}};
        if (windows.indices) result.push_back({windows.output, index_type});
        return result;
    }

    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[0]) return;
        Graph& graph = context.graph;
        const Node& node = context.node;
        std::vector<ValueId> inputs{dy};
        if (node.attrs.text("mode") == "max") inputs.push_back(positions(graph, node));
        Attrs attrs = node.attrs;
        attrs.set("sizes", graph.shape(node.inputs[0]).to_vector());
        context.input_gradients[0] =
            graph.add1(adaptive_ ? adaptive_backward_type : pooling_backward_type,
                       node.name + "/backward", inputs, attrs);
    }

    void oracle(OracleCall& call) const override { pooling_nd::oracle(call, adaptive_); }
    void oracle_backward(OracleBackwardCall& call) const override {
        pooling_nd::oracle_backward(call, adaptive_);
    }

  private:
    /// The forward node's second output, which it gets here if it had none.
    static ValueId positions(Graph& graph, const Node& node) {
        const NodeId id = graph.value(node.outputs[0]).producer;
        if (!node.attrs.boolean("return_indices")) {
            Value index;
            index.name = node.name + ":1";
            index.spec = {graph.shape(node.outputs[0]), index_type};
            index.producer = id;
            const ValueId added = graph.add_value(std::move(index));
            Node& forward = graph.nodes[static_cast<std::size_t>(id)];
            forward.attrs.set("return_indices", true);
            forward.outputs.push_back(added);
        }
        return graph.nodes[static_cast<std::size_t>(id)].outputs[1];
    }

    bool adaptive_;
    Schema schema_;
};

/// dy and, for max, the positions -> dx.
class Backward : public Operator {
  public:
    explicit Backward(bool adaptive) : adaptive_(adaptive), schema_(schema_of(adaptive, true)) {}
    std::string_view type() const override {
        return adaptive_ ? adaptive_backward_type : pooling_backward_type;
    }
    bool internal() const override { return true; }
    int max_inputs() const override { return 2; }
    const Schema& schema() const override { return schema_; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }

  private:
    bool adaptive_;
    Schema schema_;
};

}  // namespace

std::unique_ptr<Operator> make_pooling() {
    return std::make_unique<Forward>(false);
}
std::unique_ptr<Operator> make_adaptive() {
    return std::make_unique<Forward>(true);
}
std::unique_ptr<Operator> make_backward(bool adaptive) {
    return std::make_unique<Backward>(adaptive);
}

}  // namespace dlprim::pooling_nd
