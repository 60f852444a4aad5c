// SPDX-License-Identifier: MIT
// Dropout: in training, sets a share of the elements to 0 and scales the rest to keep the mean.
// Otherwise it is the identity. Seed, step, stream and position determine which elements are
// dropped, so the backward pass computes the mask again instead of storing it.
#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/declared_operator.hpp"
#include "graph/oracle_loops.hpp"

namespace dlprim::dropout {

namespace {

/// The factor of each element: in training 0 or 1 / (1 - p), otherwise 1.
std::vector<double> factors(const Attrs& attrs, bool training, const Shape& shape,
                            std::uint64_t seed, std::uint64_t step) {
    const double p = attrs.number("p");
    std::vector<double> result(static_cast<std::size_t>(shape.numel()), 1.0);
    if (!training || p == 0) return result;
    namespace pw = pointwise;
    const pw::ExprPtr uniform = pw::call(
        "uniform",
        {pw::input(0), pw::input(1), pw::constant(static_cast<double>(attrs.integer("stream")))});
    const std::vector<double> key{static_cast<double>(seed), static_cast<double>(step)};
    for_each_position(shape, [&](const auto& index, std::size_t i) {
        const bool kept = pw::evaluate(uniform, key, {}, index, shape) >=
                          static_cast<double>(static_cast<float>(p));
        result[i] = kept && p < 1 ? 1 / (1 - p) : 0;
    });
    return result;
}

class Dropout : public DeclaredOperator<ops::Dropout> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        return {inputs[0]};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const double p = node.attrs.number("p");
        if (!graph.training || p == 0) {
            outputs = {node.inputs[0]};
            return true;
        }
        // 24 bits, which are exact where a program's constants are float.
        std::int64_t stream = node.attrs.integer("stream");
        if (stream < 0) stream = static_cast<std::int64_t>(hash64(node.name) & 0xffffff);
        outputs = graph.pointwise(
            node.name, cat("y0 = uniform(x1, x2, ", stream, ") >= p0 ? x0 * p1 : 0"),
            {node.inputs[0], graph.scalar("@seed", DType::i64), graph.scalar("@step", DType::i64)},
            {p, p < 1 ? 1 / (1 - p) : 0});
        graph.nodes.back().name = node.name;
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
        const auto by = factors(call.attrs, call.training, x.shape, call.seed, call.step);
        for (std::size_t i = 0; i < x.data.size(); ++i) y.data[i] = x.data[i] * by[i];
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
        const auto by = factors(call.attrs, call.training, x.shape, call.seed, call.step);
        for (std::size_t i = 0; i < x.data.size(); ++i)
            dx.data[i] = call.output_gradients[0].data[i] * by[i];
    }
};

}  // namespace

void register_dropout(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Dropout>());
}

}  // namespace dlprim::dropout
