// SPDX-License-Identifier: MIT
// The gradients of Scan; see gradient.hpp.
#include "ops/scan/gradient.hpp"

#include "base/text.hpp"
#include "ops/scan/options.hpp"

#include <string>

namespace dlprim::scan {

namespace {

/// Adds nodes beside the Scan whose gradient they compute.
class Nodes {
  public:
    explicit Nodes(GradientContext& context)
        : x(context.node.inputs[0]),
          y(context.node.outputs[0]),
          dy(context.output_gradients[0]),
          graph_(context.graph),
          attrs_(context.node.attrs),
          at_(context.node.name + "/backward/") {}

    const ValueId x, y, dy;

    ValueId computed(std::string_view name, const std::string& code,
                     const std::vector<ValueId>& inputs) {
        return graph_.pointwise1(cat(at_, name), code, inputs);
    }
    /// A scan along the same lines, in the same direction or from their other end (`back`).
    ValueId scanned(std::string_view name, std::string_view method, ValueId input, bool back,
                    bool exclusive) {
        return graph_.add1(type, cat(at_, name), {input},
                           {{"method", std::string(method)},
                            {"dim", attrs_.integer("dim")},
                            {"reverse", attrs_.boolean("reverse") != back},
                            {"exclusive", exclusive}});
    }
    /// How many elements are 0, up to each.
    ValueId zeros() {
        const ValueId is_zero =
            graph_.add1("Pointwise", at_ + "is_zero", {x},
                        {{"code", std::string("y0 = x0 == 0")}, {"dtypes", Strings{"int64"}}});
        return scanned("zeros", "sum", is_zero, false, false);
    }
    /// The gradients' sums at the elements that became maxima or minima.
    ValueId scattered(ValueId positions) {
        const Shape shape = graph_.shape(x);
        if (shape.rank() == 0) return dy;
        return graph_.add1("Scatter", at_ + "scattered", {positions, dy},
                           {{"mode", std::string("elements")},
                            {"dim", attrs_.integer("dim")},
                            {"reduction", std::string("add")},
                            {"shape", shape.to_vector()}});
    }

  private:
    Graph& graph_;
    const Attrs& attrs_;
    std::string at_;
};

// y_k = x_1 ... x_k. The gradient of a factor is the sum over k of dy_k y_k, divided by the factor.
// That of the first zero is the sum with a 1 in its place. Behind it all products are 0.
ValueId product_gradient(Nodes& nodes, bool exclusive) {
    const auto sum = [&](const std::string& name, ValueId products) {
        const ValueId terms = nodes.computed(name + "_terms", "y0 = x0 * x1", {nodes.dy, products});
        return nodes.scanned(name, "sum", terms, true, exclusive);
    };
    const ValueId zeros = nodes.zeros();
    const ValueId factors =
        nodes.computed("factors", "y0 = x0 == 0 && x1 == 1 ? 1 : x0", {nodes.x, zeros});
    const ValueId others = nodes.scanned("others", "prod", factors, false, exclusive);
    return nodes.computed("dx", "y0 = x1 == 0 ? x2 / x0 : x0 == 0 && x1 == 1 ? x3 : 0",
                          {nodes.x, zeros, sum("sum", nodes.y), sum("sum_of_others", others)});
}

// The gradient of x_i is the sum over k of dy_k exp(x_i - y_k). It is made of logarithms, of the
// positive and of the negative dy, since exp(-y_k) alone may be too large.
ValueId logsumexp_gradient(Nodes& nodes) {
    const auto sum = [&](const std::string& name, const std::string& sign) {
        const ValueId terms = nodes.computed(
            name + "_terms", "y0 = log(max(" + sign + "x0, 0)) - x1", {nodes.dy, nodes.y});
        return nodes.scanned(name, "logsumexp", terms, true, false);
    };
    return nodes.computed("dx", "y0 = exp(x0 + x1) - exp(x0 + x2)",
                          {nodes.x, sum("positive", ""), sum("negative", "-")});
}

}  // namespace

void add_gradient(GradientContext& context) {
    const Node& node = context.node;
    const bool exclusive = node.attrs.boolean("exclusive");
    Nodes nodes(context);
    switch (method_of(node.attrs)) {
        case Method::sum:
            context.input_gradients[0] = nodes.scanned("dx", "sum", nodes.dy, true, exclusive);
            break;
        case Method::prod:
            context.input_gradients[0] = product_gradient(nodes, exclusive);
            break;
        case Method::logsumexp:
            context.input_gradients[0] = logsumexp_gradient(nodes);
            break;
        case Method::max:
        case Method::min:
            context.input_gradients[0] = nodes.scattered(node.outputs[1]);
            break;
    }
}

}  // namespace dlprim::scan
