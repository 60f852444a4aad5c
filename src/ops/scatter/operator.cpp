// SPDX-License-Identifier: MIT
// Scatter as an operator: its options, shape rule and gradient.
#include "ops/scatter/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "graph/indexed_operator.hpp"
#include "ops/scatter/options.hpp"
#include "ops/scatter/reduction_gradient.hpp"

namespace dlprim::scatter {

namespace {

class Scatter : public DeclaredOperator<ops::Scatter, IndexedOperator>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs& attrs) const override {
        return reduction_of(attrs) == Reduction::none;
    }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 3; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Reduction reduction = reduction_of(attrs);
        const TensorSpec& updates = inputs.back();
        const TensorSpec& indices = inputs[inputs.size() - 2];
        const TensorSpec data = data_of(attrs, inputs);
        require(inputs.size() == 2 || attrs.ints("shape").empty(),
                "shape is given beside data, which has a shape");
        require(data.dtype == updates.dtype, "data is ", name_of(data.dtype), ", updates are ",
                name_of(updates.dtype));
        require(reduction == Reduction::none || !is_narrow(data.dtype), "elements of ",
                name_of(data.dtype), " are moved only, not combined by ", attrs.text("reduction"));
        const Indexing indexing(attrs, data.shape, indices.shape, indices.dtype);
        require(indexing.values == updates.shape, "updates have shape ", updates.shape, ", data ",
                data.shape, " and indices ", indices.shape, " need ", indexing.values);
        return {data};
    }
    IndexInput index_input(const Attrs& attrs, std::span<const TensorSpec> inputs) const override {
        const std::size_t at = inputs.size() - 2;
        const Shape data = data_of(attrs, inputs).shape;
        const Indexing indexing(attrs, data, inputs[at].shape, inputs[at].dtype);
        return {static_cast<int>(at), indexing.sizes, indexing.from_end};
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        const Reduction reduction = reduction_of(node.attrs);
        const bool keeps = node.attrs.boolean("include_self") || reduction == Reduction::none;
        if (reduction == Reduction::mean) return add_mean_gradient(context, dy);
        if (!keeps && reduction != Reduction::add)
            fail(ErrorKind::unsupported, "there is no gradient of reduction ",
                 node.attrs.text("reduction"), " without include_self");
        if (reduction == Reduction::mul) return add_product_gradient(context, dy);
        if (reduction == Reduction::max || reduction == Reduction::min)
            return add_extreme_gradient(context, dy);
        const std::size_t updates = node.inputs.size() - 1;
        if (context.wanted[updates])
            context.input_gradients[updates] = reduction == Reduction::add
                                                   ? gathered(context, dy)
                                                   : gathered_from_winners(context, dy);
        if (updates == 1 || !context.wanted[0]) return;
        context.input_gradients[0] =
            reduction == Reduction::add && keeps ? dy : without_updates(context, dy);
    }
    /// The result may be data's memory: an element is read where it is written.
    std::vector<std::pair<int, int>> in_place(const Node& node) const override {
        if (node.inputs.size() != 3) return {};
        return {{0, 0}};
    }

    void oracle(OracleCall& call) const override { scatter::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        scatter::oracle_backward(call);
    }

  private:
    static TensorSpec data_of(const Attrs& attrs, std::span<const TensorSpec> inputs) {
        if (inputs.size() == 3) return inputs[0];
        return {Shape(attrs.ints("shape")), inputs[1].dtype};
    }
    static ValueId indices_of(const Node& node) { return node.inputs[node.inputs.size() - 2]; }

    /// The gradient at the parts that the updates went to.
    static ValueId gathered(GradientContext& context, ValueId dy) {
        const Node& node = context.node;
        return context.graph.add1("Gather", node.name + "/backward_updates", {dy, indices_of(node)},
                                  indexing_attrs(node.attrs));
    }

    /// The same, and zeros for updates that a later one replaced. A Scatter of the updates'
    /// positions tells which they are.
    static ValueId gathered_from_winners(GradientContext& context, ValueId dy) {
        const Node& node = context.node;
        Graph& graph = context.graph;
        const std::string at = node.name + "/backward_updates";
        const TensorSpec updates = graph.spec(node.inputs.back());  // a copy: adding nodes moves it
        const ValueId positions =
            graph.add1("Pointwise", at + "/positions", {integer_zero(graph, at)},
                       {{"code", position_code(updates.shape)},
                        {"shape", Ints(updates.shape.to_vector())},
                        {"dtypes", Strings{"int64"}}});
        Attrs attrs = indexing_attrs(node.attrs);
        attrs.set("shape", graph.shape(node.outputs[0]).to_vector());
        const ValueId winners =
            graph.add1(scatter::type, at + "/winners", {indices_of(node), positions}, attrs);
        const ValueId winner = graph.add1("Gather", at + "/winner", {winners, indices_of(node)},
                                          indexing_attrs(node.attrs));
        const ValueId is_last =
            graph.add1("Pointwise", at + "/is_last", {winner, positions},
                       {{"code", std::string("y0 = x0 == x1")}, {"dtypes", Strings{"bool"}}});
        return graph.pointwise1(at + "/kept", "y0 = x0 ? x1 : 0", {is_last, gathered(context, dy)});
    }

    /// Arithmetic is that of 64-bit integers where all inputs are integers.
    static ValueId integer_zero(Graph& graph, const std::string& at) {
        Value literal;
        literal.name = at + "/zero";
        literal.spec = {Shape{}, DType::i64};
        literal.role = Role::constant;
        literal.data.resize(sizeof(std::int64_t));
        return graph.add_value(std::move(literal));
    }

    /// Each element's position among all: "y0 = x0 + (index(0) * size(1) + index(1)) * size(2) +
    /// index(2)".
    static std::string position_code(const Shape& shape) {
        std::string place = shape.rank() == 0 ? "0" : "index(0)";
        for (int d = 1; d < shape.rank(); ++d)
            place = cat("(", place, ") * size(", d, ") + index(", d, ")");
        return "y0 = x0 + " + place;
    }

    /// The gradient with zeros where updates replaced data.
    static ValueId without_updates(GradientContext& context, ValueId dy) {
        const Node& node = context.node;
        const std::string at = node.name + "/backward_data";
        const TensorSpec updates = context.graph.spec(node.inputs.back());
        const ValueId zeros = context.graph.add1(
            "Pointwise", at + "/zeros", {},
            {{"code", std::string("y0 = 0")},
             {"shape", Ints(updates.shape.to_vector())},
             {"dtypes", Strings{std::string(name_of(context.graph.spec(dy).dtype))}}});
        return context.graph.add1(scatter::type, at, {dy, indices_of(node), zeros},
                                  indexing_attrs(node.attrs));
    }
};

}  // namespace

void register_scatter(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Scatter>());
    add_host_engine(engines);
    add_winners_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::scatter
