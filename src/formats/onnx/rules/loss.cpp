// SPDX-License-Identifier: MIT
// Losses of class labels. A class's row is chosen by comparing its position with the label, so that
// labels which are ignored need no row.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// What a loss is made of, as program text: scores x0 [N, C, ...], labels x1 [N, 1, ...] and
/// perhaps weights x2 [1, C, 1, ...].
struct Terms {
    std::vector<Ref> inputs;
    std::string chosen;  ///< whether a position is the label's, and counts
    std::string weight;  ///< of a class: "1" where all count alike
    std::vector<double> scalars;
};

Terms read_terms(Call& call, Ref scores, Ref weights) {
    const Shape &x = scores->spec.shape, &labels = call.shape(1);
    call.check(x.rank() >= 2 && labels.rank() == x.rank() - 1, "scores of shape ", x.str(),
               " and labels of shape ", labels.str(), " do not fit");
    call.check(!is_float(call.dtype(1)), "labels are ", name_of(call.dtype(1)),
               "; they must be integers");
    Ints sizes = labels.to_vector();
    sizes.insert(sizes.begin() + 1, 1);
    call.check(Shape(sizes) == x.with(1, 1), "scores of shape ", x.str(), " and labels of shape ",
               labels.str(), " do not fit");
    Terms made{{scores, call.build.reshape(call.in(1), Shape(sizes))}, "index(1) == x1", "1", {}};
    if (call.given("ignore_index")) {
        made.chosen += " && x1 != p0";
        made.scalars = {static_cast<double>(call.integer("ignore_index", 0))};
    }
    if (weights) {
        const Shape& given = weights->spec.shape;
        call.check(given == Shape{x[1]}, "weights of shape ", given.str(), " for ", x[1],
                   " classes");
        Ints wide(static_cast<std::size_t>(x.rank()), 1);
        wide[1] = x[1];
        made.inputs.push_back(call.build.reshape(weights, Shape(wide)));
        made.weight = "x2";
    }
    return made;
}

Ref loss_of(Call& call, Ref log_probabilities, Ref weights) {
    const Terms terms = read_terms(call, log_probabilities, weights);
    const std::string reduction = call.text("reduction", "mean");
    call.check(reduction == "none" || reduction == "sum" || reduction == "mean", "reduction '",
               reduction, "' is none of none, sum and mean");
    Builder& build = call.build;
    const std::string term = cat("(", terms.chosen, " ? -x0 * ", terms.weight, " : 0)");
    if (reduction == "none")
        return build.reshape(build.pointwise(cat("y0 = sum[1]", term), terms.inputs, terms.scalars),
                             call.shape(1));
    if (reduction == "sum")
        return build.reshape(build.pointwise(cat("y0 = sum[]", term), terms.inputs, terms.scalars),
                             {});
    const std::string both =
        cat("y0 = sum[]", term, "; y1 = sum[](", terms.chosen, " ? ", terms.weight, " : 0)");
    Attrs options{{"code", both}};
    if (!terms.scalars.empty()) options.set("scalars", Doubles(terms.scalars));
    const std::vector<Ref> sums = build.add("Pointwise", terms.inputs, options);
    return build.reshape(build.pointwise("y0 = x0 / x1", {sums[0], sums[1]}), {});
}

Ref weights_of(Call& call) {
    return call.has(2) ? call.in(2) : nullptr;
}

void negative_log_likelihood(Call& call) {
    call.set(0, loss_of(call, call.in(0), weights_of(call)));
}

void softmax_cross_entropy(Call& call) {
    const Ref log_probabilities =
        call.build.add1("Softmax", {call.in(0)}, {{"axis", 1}, {"log", true}});
    call.set(0, loss_of(call, log_probabilities, weights_of(call)));
    call.set(1, log_probabilities);
}

}  // namespace

std::vector<Rule> loss_rules() {
    return {
        {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
        {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
    };
}

}  // namespace dlprim::onnx
