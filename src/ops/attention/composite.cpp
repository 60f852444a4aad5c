// SPDX-License-Identifier: MIT
// Attention as MatMul, Pointwise and Softmax nodes, and its gradient from the logarithms of sums.
#include "ops/attention/composite.hpp"

#include "base/text.hpp"
#include "ops/attention/operator.hpp"

#include <utility>

namespace dlprim::attention {

Composite::Composite(Graph& graph, std::string name, const Attrs& attrs,
                     const std::vector<ValueId>& inputs)
    : graph_(graph),
      name_(std::move(name)),
      options_(Options::read(attrs, graph.shape(inputs[0]))) {
    std::vector<Shape> given;
    const std::size_t count = operands_among(attrs, inputs.size());
    for (std::size_t i = 0; i < count; ++i) given.push_back(graph.shape(inputs[i]));
    run_.assign(inputs.begin() + static_cast<std::ptrdiff_t>(count), inputs.end());
    shapes_ = operand_shapes(attrs, given);
    for (std::size_t i = 0; i < count; ++i)
        operands_.push_back(graph.reshape(cat(name_, "/grouped", i), inputs[i], shapes_[i]));
    sight_ = Sight::of(options_, shapes_[0][-2], shapes_[1][-2]);
}

bool Composite::chooses() const {
    return operands_.size() > 3 && graph_.spec(operands_[3]).dtype == DType::boolean;
}

std::string Composite::unseen() const {
    const std::string later =
        sight_.causal ? cat("index(-1) - index(-2) > ", sight_.offset) : std::string();
    if (sight_.window == 0) return later;
    return cat("index(-1) - index(-2) <= ", sight_.offset - sight_.window,
               later.empty() ? "" : " || ", later);
}

ValueId Composite::scores() {
    products_ = graph_.add1("MatMul", name_ + "/scores", {operands_[0], operands_[1]},
                            Attrs{{"transpose_b", true}, {"alpha", options_.scale}});
    const bool mask = operands_.size() > 3, capped = options_.softcap > 0;
    const std::string hidden = unseen();
    if (!mask && !capped && hidden.empty()) return products_;
    // The lowest float is used instead of -inf, because differences of infinities are NaN.
    std::string score = capped ? "p0 * tanh(x0 / p0)" : "x0";
    if (mask)
        score = chooses() ? cat("select(x1, ", score, ", -3.4e38)")
                          : cat("max(", score, " + x1, -3.4e38)");
    if (!hidden.empty()) score = cat("select(", hidden, ", -3.4e38, ", score, ")");
    std::vector<ValueId> inputs{products_};
    if (mask) inputs.push_back(operands_[3]);
    return graph_.pointwise1(
        name_ + "/mask", "y0 = " + score, inputs,
        capped ? std::vector<double>{options_.softcap} : std::vector<double>{});
}

ValueId Composite::left(ValueId weights) {
    const bool mask = operands_.size() > 3;
    const std::string hidden = unseen();
    if (!mask && !sight_.has_empty_rows()) return weights;
    std::vector<ValueId> inputs{weights};
    if (mask) inputs.push_back(operands_[3]);
    const std::string masked = chooses() ? "!x1" : mask ? "x1 < -3.4e38" : "";
    return graph_.pointwise1(
        name_ + "/left",
        cat("y0 = select(", masked, mask && !hidden.empty() ? " || " : "", hidden, ", 0, x0)"),
        inputs);
}

ValueId Composite::dropped(const std::string& name, ValueId weights) {
    if (run_.empty()) return weights;
    const double p = options_.dropout_p;
    return graph_.pointwise1(cat(name_, "/", name),
                             cat("y0 = uniform(x1, x2, ", options_.stream, ") >= p0 ? x0 * p1 : 0"),
                             {weights, run_[0], run_[1]}, {p, p < 1 ? 1 / (1 - p) : 0});
}

ValueId Composite::through_softcap(ValueId gradient) {
    if (options_.softcap == 0) return gradient;
    return graph_.pointwise1(name_ + "/softcap", "t = tanh(x1 / p0); y0 = x0 * (1 - t * t)",
                             {gradient, products_}, {options_.softcap});
}

// Shapes are copies, since nodes that are added move those of the graph.
ValueId Composite::values(ValueId weights, Shape made) {
    const ValueId y = graph_.add1("MatMul", name_ + "/values", {weights, operands_[2]});
    return graph_.reshape(name_ + "/heads", y, made);
}

ValueId Composite::logarithms(ValueId scores, Shape made) {
    const ValueId most = graph_.pointwise1(name_ + "/most", "y0 = max[-1](x0)", {scores});
    const ValueId sum =
        graph_.pointwise1(name_ + "/sum", "y0 = sum[-1](exp(x0 - x1))", {scores, most});
    const Shape batch = with_matrix(batch_shape(shapes_), shapes_[0][-2], 1);
    // Values may have batches that the scores lack.
    const ValueId lse = graph_.add1(
        "Pointwise", name_ + "/logarithms", {sum, most},
        {{"code", std::string("y0 = log(x0) + x1")}, {"shape", Ints(batch.to_vector())}});
    return graph_.reshape(name_ + "/logarithms_of_heads", lse, made);
}

ValueId Composite::in_groups(const std::string& name, ValueId value, std::int64_t columns) {
    return graph_.reshape(cat(name_, "/", name), value,
                          with_matrix(batch_shape(shapes_), shapes_[0][-2], columns));
}

Composite::Gradients Composite::gradients(ValueId lse, ValueId delta, ValueId dy) {
    const ValueId again = left(graph_.pointwise1(name_ + "/weights", "y0 = exp(x0 - x1)",
                                                 {scores(), in_groups("grouped_lse", lse, 1)}));
    const ValueId dp = graph_.add1("MatMul", name_ + "/weights_gradient",
                                   {in_groups("grouped_dy", dy, shapes_[2][-1]), operands_[2]},
                                   Attrs{{"transpose_b", true}});
    const ValueId ds = graph_.pointwise1(
        name_ + "/scores_gradient", "y0 = x0 * (x1 - x2)",
        {again, dropped("dropped_gradient", dp), in_groups("grouped_delta", delta, 1)});
    return {dropped("dropped", again), ds};
}

}  // namespace dlprim::attention
