// SPDX-License-Identifier: MIT
// The gradients of Scatter's mul, max, min and mean, by Gather, Scatter and Pointwise nodes.
#include "ops/scatter/reduction_gradient.hpp"

#include "base/text.hpp"
#include "engine/indexing/indexing.hpp"
#include "ops/scatter/operator.hpp"

#include <string_view>

namespace dlprim::scatter {

namespace {

/// The operands of a Scatter, and the nodes of its gradient.
class Nodes {
  public:
    Nodes(GradientContext& context, ValueId dy)
        : updates(context.node.inputs.back()),
          result(context.node.outputs[0]),
          graph_(context.graph),
          node_(context.node),
          indices_(context.node.inputs[context.node.inputs.size() - 2]),
          dtype_(name_of(graph_.spec(dy).dtype)) {
        if (node_.inputs.size() == 3) data = node_.inputs[0];
    }

    ValueId data = no_value;  ///< no_value: zeros
    ValueId updates, result;

    /// Elements of a value with the shape of data, at the places of the updates.
    ValueId gathered(std::string_view name, ValueId value) {
        return graph_.add1("Gather", name_of_node(name), {value, indices_},
                           indexing_attrs(node_.attrs));
    }
    /// `into` (no_value: zeros) with `values` at the places of the updates.
    ValueId scattered(std::string_view name, ValueId into, ValueId values,
                      std::string_view reduction) {
        Attrs attrs = indexing_attrs(node_.attrs);
        attrs.set("reduction", std::string(reduction));
        if (into == no_value) attrs.set("shape", graph_.shape(result).to_vector());
        std::vector<ValueId> inputs{indices_, values};
        if (into != no_value) inputs.insert(inputs.begin(), into);
        return graph_.add1(type, name_of_node(name), inputs, attrs);
    }
    /// A program whose result has the gradient's type.
    ValueId computed(std::string_view name, std::string_view code, std::vector<ValueId> inputs) {
        return pointwise(name, code, std::move(inputs), dtype_);
    }
    /// A program whose result is a number to count with.
    ValueId counted(std::string_view name, std::string_view code, std::vector<ValueId> inputs) {
        return pointwise(name, code, std::move(inputs), "float");
    }

  private:
    std::string name_of_node(std::string_view name) const {
        return cat(node_.name, "/backward_", name);
    }
    ValueId pointwise(std::string_view name, std::string_view code, std::vector<ValueId> inputs,
                      std::string_view dtype) {
        return graph_.add1("Pointwise", name_of_node(name), std::move(inputs),
                           {{"code", std::string(code)}, {"dtypes", Strings{std::string(dtype)}}});
    }

    Graph& graph_;
    const Node& node_;
    ValueId indices_;
    std::string dtype_;
};

bool wants_data(const GradientContext& context, const Nodes& nodes) {
    return nodes.data != no_value && context.wanted[0];
}

}  // namespace

void add_extreme_gradient(GradientContext& context, ValueId dy) {
    Nodes nodes(context, dy);
    const ValueId from_updates = nodes.counted(
        "from_updates", "y0 = x0 == x1", {nodes.updates, nodes.gathered("winner", nodes.result)});
    const ValueId from_data =
        nodes.data == no_value
            ? nodes.counted("from_data", "y0 = x0 == 0", {nodes.result})
            : nodes.counted("from_data", "y0 = x0 == x1", {nodes.data, nodes.result});
    const ValueId count = nodes.scattered("count", from_data, from_updates, "add");
    const ValueId share = nodes.computed("share", "y0 = x1 > 0 ? x0 / x1 : 0", {dy, count});
    const auto taken = [&](std::string_view name, ValueId from, ValueId value) {
        return nodes.computed(name, "y0 = x0 > 0 ? x1 : 0", {from, value});
    };
    if (context.wanted[context.node.inputs.size() - 1])
        context.input_gradients.back() =
            taken("updates", from_updates, nodes.gathered("share_at", share));
    if (wants_data(context, nodes)) context.input_gradients[0] = taken("data", from_data, share);
}

// A factor's gradient is dy * result / factor. That of the only zero among an element's updates is
// dy * (the result with a 1 in its place), and where there are two, all of them are 0.
void add_product_gradient(GradientContext& context, ValueId dy) {
    Nodes nodes(context, dy);
    if (wants_data(context, nodes)) {
        const ValueId factors =
            nodes.computed("data_factors", "y0 = x0 == 0 ? 1 : x0", {nodes.data});
        const ValueId result = nodes.scattered("data_result", factors, nodes.updates, "mul");
        context.input_gradients[0] =
            nodes.computed("data", "y0 = x0 * x1 / x2", {dy, result, factors});
    }
    if (!context.wanted[context.node.inputs.size() - 1]) return;
    const ValueId zeros = nodes.counted("zeros", "y0 = x0 == 0", {nodes.updates});
    const ValueId count =
        nodes.gathered("count_at", nodes.scattered("count", no_value, zeros, "add"));
    const ValueId factors =
        nodes.computed("factors", "y0 = x0 == 0 && x1 == 1 ? 1 : x0", {nodes.updates, count});
    const auto share = [&](const std::string& name, ValueId result) {
        return nodes.gathered(name + "_at", nodes.computed(name, "y0 = x0 * x1", {dy, result}));
    };
    const ValueId others = nodes.scattered("others", nodes.data, factors, "mul");
    context.input_gradients.back() = nodes.computed(
        "updates", "y0 = x0 != 0 ? x1 / x0 : x2 == 1 ? x3 : 0",
        {nodes.updates, share("share", nodes.result), count, share("zero_share", others)});
}

void add_mean_gradient(GradientContext& context, ValueId dy) {
    Nodes nodes(context, dy);
    const bool keeps = context.node.attrs.boolean("include_self");
    const ValueId ones = nodes.counted("ones", "y0 = x0 == 0 || x0 != 0", {nodes.updates});
    const ValueId count = nodes.scattered("count", no_value, ones, "add");
    const ValueId share =
        nodes.computed("share", keeps ? "y0 = x0 / (x1 + 1)" : "y0 = x0 / max(x1, 1)", {dy, count});
    if (context.wanted[context.node.inputs.size() - 1])
        context.input_gradients.back() = nodes.gathered("updates", share);
    if (wants_data(context, nodes))
        context.input_gradients[0] =
            keeps ? share : nodes.computed("data", "y0 = x1 == 0 ? x0 : 0", {dy, count});
}

}  // namespace dlprim::scatter
