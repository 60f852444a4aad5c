// SPDX-License-Identifier: MIT
// BatchNormTraining: one pass over x computes the batch statistics, and a second applies them. The
// gradient also takes two passes. The statistics are computed from x minus a shift near the mean,
// so that a mean far from zero does not cost accuracy.
#include "graph/lowering.hpp"
#include "ops/batchnorm/operator.hpp"

#include <cmath>
#include <string>
#include <string_view>

namespace dlprim::batchnorm {

namespace {

/// The shift, of shape [1, C, 1, ...]: the mean of the first sample, which is within sqrt(N)
/// deviations of the mean of all N samples. If there are few samples, the mean of all.
ValueId make_shift(Graph& graph, const std::string& name, ValueId x) {
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    if (shape[0] >= 4) {
        x = graph.add1(
            "Slice", name + "/first", {x},
            Attrs{{"dim", std::int64_t{0}}, {"begin", std::int64_t{0}}, {"end", std::int64_t{1}}});
        if (shape.rank() == 2) return x;
    }
    const std::string over = axes_text(axes_but(shape.rank(), 1));
    return graph.reshape(name + "/shift_shape",
                         graph.pointwise1(name + "/shift", "y0 = mean" + over + "(x0)", {x}),
                         per_channel);
}

/// The number of elements per channel, and numbers derived from it.
struct Count {
    double elements;
    double power;  ///< the next power of two: multiplying by it is exact
    double share;  ///< power / elements
    double lost;   ///< relative error of the share when it is rounded to float

    explicit Count(const TensorSpec& x, std::int64_t shards = 1)
        : elements(static_cast<double>(x.shape.numel() * shards) / static_cast<double>(x.shape[1])),
          power(std::exp2(std::ceil(std::log2(elements)))),
          share(power / elements),
          lost(x.dtype == DType::f64 ? 0
                                     : share / static_cast<double>(static_cast<float>(share)) - 1) {
    }
};

/// Inputs: x0 and x1 are the means of x minus the shift and of its square. x2 is the shift. x3 and
/// x4 are the old running mean and variance. p0 is eps, p1 and p2 are Count's share and lost, p3 is
/// the momentum, and p4 is the factor that makes the variance unbiased. Outputs: y0 is r, y1 is the
/// gradient's weight, and y2 and y3 are the new running mean and variance.
///
/// These are few instructions per channel, and their rounding errors are the same for all elements
/// of a channel, so that they do not average out. Therefore the errors are computed too, in
/// variables whose names end in l. (The mean of squares is a sum times the reciprocal of the count,
/// which kernels round to float.) The rsqrt of devices may have an error of two units in the last
/// place, which one step of Newton's method corrects. If the root is 0 or infinite, nothing is
/// corrected.
constexpr const char* deviation =
    "b = x0 * x0; bl = fma(x0, x0, -b); "
    "d = x1 - b; dl = (x1 - d) - b + (x1 * p2 - bl); "
    "v = d < 0 ? 0 : d; vl = d < 0 ? 0 : dl; "
    "s = v + p0; t = s - v; sl = (v - (s - t)) + (p0 - t) + vl; "
    "g = rsqrt(s); h = s * g; "
    "n = fma(0.5 * g, fma(-h, g, 1) - (fma(s, g, -h) + sl * g) * g, g); "
    "r = isnan(n) ? g : n; q = s * r; "
    "e = fma(-q, r, 1) - (fma(s, r, -q) + sl * r) * r; "  // 1 / (s + sl) is r * r * (1 + e)
    "w = fma(r, p1, r * p1 * (e + p2)); "
    "y0 = r; y1 = isnan(w) ? r * p1 : w; "
    "y2 = x3 + p3 * ((x2 + x0) - x3); y3 = x4 + p3 * (v * p4 - x4)";

/// The same with statistics of several shards: p2 is of the whole batch, and p5 of the shard, whose
/// mean of squares was rounded.
std::string deviation_of_shards() {
    std::string code = deviation;
    const std::string_view own = "x1 * p2";
    return code.replace(code.find(own), own.size(), "x1 * p5");
}

/// The values of the whole batch in the place of those of this shard; `moments` as for ShardSum.
std::vector<ValueId> of_all_shards(Graph& graph, const std::string& name,
                                   const std::vector<ValueId>& values, bool moments) {
    return graph.add(
        shard_sum_type, name + "/all_shards", values,
        Attrs{{"what", cat(moments ? "statistics of " : "gradients of ", "'", name, "'")},
              {"moments", moments}});
}

}  // namespace

std::vector<TensorSpec> BatchNormTraining::infer(const Attrs&,
                                                 std::span<const TensorSpec> inputs) const {
    const Shape& shape = inputs[0].shape;
    require(shape.rank() >= 2, "input of shape ", shape, " has no channels: [N, C, ...] is needed");
    require(inputs.size() != 4, "has a weight without a bias, or the reverse");
    for (std::size_t i = 1; i < inputs.size(); ++i)
        require(inputs[i].shape == Shape{shape[1]}, "operand ", i, " has shape ", inputs[i].shape,
                ", the input of shape ", shape, " needs ", Shape{shape[1]});
    const TensorSpec statistic{channel_shape(shape[1], shape.rank()), inputs[0].dtype};
    return {inputs[0], statistic, statistic, statistic, statistic, inputs[1], inputs[2]};
}

void BatchNormTraining::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const bool affine = node.inputs.size() == 5;
    const ValueId dy = context.output_gradients[0], x = node.inputs[0];
    if (dy == no_value) return;
    const ValueId shift = node.outputs[1], rest = node.outputs[2], rstd = node.outputs[3],
                  weight = node.outputs[4];
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    const std::string at = node.name + "/backward", over = axes_text(axes_but(shape.rank(), 1));
    const auto sums = graph.pointwise(
        at + "/sums", "y0 = sum" + over + "(x0 * (x1 - x2 - x3) * x4); y1 = sum" + over + "(x0)",
        {dy, x, shift, rest, rstd});
    if (affine) {
        context.input_gradients[3] = graph.reshape(at + "/scale", sums[0], Shape{shape[1]});
        context.input_gradients[4] = graph.reshape(at + "/offset", sums[1], Shape{shape[1]});
    }
    if (!context.wanted[0]) return;
    // Parameters have the gradients of this shard, which the solver adds up.
    const std::int64_t shards = node.attrs.integer("shards");
    const std::vector<ValueId> whole = shards == 1 ? sums : of_all_shards(graph, at, sums, false);
    const Count count(graph.spec(x), shards);
    std::vector<ValueId> inputs{dy,
                                x,
                                shift,
                                rest,
                                weight,
                                graph.reshape(at + "/with_x", whole[0], per_channel),
                                graph.reshape(at + "/alone", whole[1], per_channel)};
    // The terms that are subtracted from dy are added up first. If the mean, which is small, were
    // subtracted alone, the rounding errors would be equal for all dy with the same sign and
    // exponent. They would leave components of dy along x and along 1, and a norm in an earlier
    // layer could mistake these for a gradient of its scale.
    std::string code = "y0 = (x0 - (x6 * p0 + (x1 - x2 - x3) * (x4 * x5 * p1))) * (x4 * p2";
    if (affine) {
        inputs.push_back(graph.reshape(at + "/factor", node.inputs[3], per_channel));
        code += " * x7";
    }
    code += ")";
    context.input_gradients[0] = graph.pointwise1(
        at, code, inputs, {1 / count.elements, 1 / count.power, count.elements / count.power});
}

bool BatchNormTraining::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId x = node.inputs[0];
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    const std::string over = axes_text(axes_but(shape.rank(), 1));
    ValueId shift = make_shift(graph, node.name, x);
    const auto means = graph.pointwise(
        node.name + "/statistics",
        "d = x0 - x1; y0 = mean" + over + "(d); y1 = mean" + over + "(d * d)", {x, shift});
    const auto flat = [&](const char* what, ValueId value) {
        return graph.reshape(cat(node.name, "/", what), value, Shape{shape[1]});
    };
    // The shift, and the means of x minus the shift and of its square.
    std::vector<ValueId> moments{flat("flat_shift", shift), flat("flat_rest", means[0]),
                                 flat("square", means[1])};
    const std::int64_t shards = node.attrs.integer("shards");
    const Count count(graph.spec(x), shards);
    std::vector<double> numbers{node.attrs.number("eps"), count.share, count.lost,
                                node.attrs.number("momentum"),
                                count.elements / (count.elements - 1)};
    std::string code_of_deviation = deviation;
    ValueId rest = means[0];
    if (shards > 1) {
        moments = of_all_shards(graph, node.name, moments, true);
        shift = graph.reshape(node.name + "/shift_of_all", moments[0], per_channel);
        rest = moments[1];
        code_of_deviation = deviation_of_shards();
        numbers.push_back(Count(graph.spec(x)).lost);
    }
    rest = graph.reshape(node.name + "/rest", rest, per_channel);
    const auto spread = graph.pointwise(
        node.name + "/deviation", code_of_deviation,
        {moments[1], moments[2], moments[0], node.inputs[1], node.inputs[2]}, numbers);
    const ValueId r = graph.reshape(node.name + "/r", spread[0], per_channel);
    const ValueId weight = graph.reshape(node.name + "/weight", spread[1], per_channel);
    std::vector<ValueId> inputs{x, shift, rest, r};
    std::string code = "y0 = (x0 - x1 - x2) * x3";
    if (node.inputs.size() == 5) {
        inputs.push_back(graph.reshape(node.name + "/scale", node.inputs[3], per_channel));
        inputs.push_back(graph.reshape(node.name + "/offset", node.inputs[4], per_channel));
        code = "y0 = (x0 - x1 - x2) * (x3 * x4) + x5";
    }
    outputs = {
        graph.pointwise1(node.name, code, inputs), shift, rest, r, weight, spread[2], spread[3]};
    return true;
}

std::unique_ptr<Operator> make_training() {
    return std::make_unique<BatchNormTraining>();
}

}  // namespace dlprim::batchnorm
