// SPDX-License-Identifier: MIT
// GatedActivation: one half of a dimension times the activation of the other, the gate (SwiGLU,
// GEGLU). Both halves are read by one launch, without Slices before it: the dimension is seen as
// [2, half], and the result is the product over the 2. So is the gradient.
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"

namespace dlprim::gated_activation {

namespace {

struct Options {
    const Activation& activation;
    int axis;
    int gate;  ///< 0 or 1: which half
    std::int64_t half;

    Options(const Attrs& attrs, const Shape& x)
        : activation(find_activation(attrs.text("activation"))),
          axis(static_cast<int>(attrs.integer("axis"))),
          gate(attrs.text("gate") == "first" ? 0 : 1) {
        require(axis >= -x.rank() && axis < x.rank(), "option axis is ", axis, ", the input ",
                x.str(), " has ", x.rank(), " dimensions");
        if (axis < 0) axis += x.rank();
        require(x[axis] % 2 == 0, "dimension ", axis, " of the input ", x.str(),
                " has no two halves");
        half = x[axis] / 2;
        require(half > 0, "dimension ", axis, " of the input ", x, " is empty");
    }
    Shape output(const Shape& x) const { return x.with(axis, half); }
    /// [dimensions before the one that is halved, `sizes`, those behind].
    Shape with(const Shape& x, const Ints& sizes) const {
        Ints dims{x.product(0, axis)};  // merged, since there may be 8
        dims.insert(dims.end(), sizes.begin(), sizes.end());
        dims.push_back(x.product(axis + 1, x.rank()));
        return Shape(dims);
    }
    Doubles scalars() const { return {activation.alpha, activation.beta}; }
};

/// The activation of x0 and its derivative, as texts of the pointwise language.
std::pair<std::string, std::string> texts(const Activation& activation) {
    const pointwise::ExprPtr value =
        pointwise::parse("x = x0; alpha = p0; beta = p1; y0 = " + activation.expression)
            .outputs[0]
            .value;
    const pointwise::ExprPtr slope = pointwise::differentiate(value, 0);
    return {pointwise::print(value), slope ? pointwise::print(pointwise::simplify(slope)) : "0"};
}

/// Calls visit(position of the value, of the gate, of the result).
template <typename Visit>
void for_each(const Options& options, const Shape& x, Visit&& visit) {
    const AxisView view(options.output(x), options.axis);
    for (std::size_t o = 0; o < view.outer; ++o)
        for (std::size_t k = 0; k < view.size; ++k)
            for (std::size_t i = 0; i < view.inner; ++i) {
                const auto gate = static_cast<std::size_t>(options.gate);
                const auto half = [&](std::size_t h) {
                    return ((2 * o + h) * view.size + k) * view.inner + i;
                };
                visit(half(1 - gate), half(gate), view.at(o, k, i));
            }
}

class GatedActivation final : public DeclaredOperator<ops::GatedActivation> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        return {{Options(attrs, inputs[0].shape).output(inputs[0].shape), inputs[0].dtype}};
    }

    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Shape x = graph.shape(node.inputs[0]);
        const Options options(node.attrs, x);
        const std::string code = cat("y0 = prod[1](index(1) == ", options.gate, " ? ",
                                     texts(options.activation).first, " : x0)");
        const ValueId y = graph.pointwise1(node.name, code,
                                           {graph.reshape(node.name + "/halves", node.inputs[0],
                                                          options.with(x, {2, options.half}))},
                                           scalars_of(code, options.scalars()));
        outputs = {graph.reshape(node.name + "/shape", y, options.output(x))};
        return true;
    }

    /// Element i of [2, half] gets dy times, from the gate, its own derivative, and from the other
    /// half that half's factor: a product over j, the second 2 of [2, 2, half].
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        Graph& graph = context.graph;
        const Node& node = context.node;
        const std::string at = node.name + "/backward";
        const Shape x = graph.shape(node.inputs[0]);
        const Options options(node.attrs, x);
        const auto [value, slope] = texts(options.activation);
        const std::string is_gate = cat("index(2) == ", options.gate);
        const std::string code =
            cat("y0 = prod[2]((index(2) == 0 ? x1 : 1) * (index(1) == index(2) ? (", is_gate, " ? ",
                slope, " : 1) : (", is_gate, " ? ", value, " : x0)))");
        const ValueId both =
            graph.reshape(at + "/halves", node.inputs[0], options.with(x, {1, 2, options.half}));
        const ValueId flow = graph.reshape(at + "/dy", dy, options.with(x, {1, 1, options.half}));
        const ValueId dx =
            pointwise_over(graph, at, code, {both, flow}, scalars_of(code, options.scalars()),
                           options.with(x, {2, 2, options.half}))[0];
        context.input_gradients[0] = graph.reshape(at + "/shape", dx, x);
    }

    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Options options(call.attrs, x.shape);
        const Activation& f = options.activation;
        HostArray& y = make_array(call.outputs, 0, options.output(x.shape), x.dtype);
        for_each(options, x.shape, [&](std::size_t value, std::size_t gate, std::size_t to) {
            y.data[to] = x.data[value] * activate(f.name, x.data[gate], f.alpha, f.beta);
        });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Options options(call.attrs, x.shape);
        const Activation& f = options.activation;
        HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
        for_each(options, x.shape, [&](std::size_t value, std::size_t gate, std::size_t to) {
            const double dy = call.output_gradients[0].data[to], g = x.data[gate];
            dx.data[value] = dy * activate(f.name, g, f.alpha, f.beta);
            dx.data[gate] = dy * x.data[value] * activate_gradient(f.name, g, f.alpha, f.beta);
        });
    }
};

}  // namespace

void register_gated_activation(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<GatedActivation>());
}

}  // namespace dlprim::gated_activation
