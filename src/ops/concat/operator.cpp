// SPDX-License-Identifier: MIT
// Concat: joins the inputs along a dimension. Its gradient is one Slice per input.
#include "ops/concat/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "ops/concat/options.hpp"

namespace dlprim::concat {

namespace {

/// Visits the oracle's elements: f(index in the input, index in the output).
template <typename F>
void visit(const Shape& input, const Shape& output, int dim, std::int64_t position, F&& f) {
    const std::int64_t outer = input.product(0, dim), inner = input.product(dim + 1, input.rank());
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < input[dim]; ++i)
            for (std::int64_t k = 0; k < inner; ++k)
                f(static_cast<std::size_t>((o * input[dim] + i) * inner + k),
                  static_cast<std::size_t>((o * output[dim] + position + i) * inner + k));
}

class Concat : public DeclaredOperator<ops::Concat>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    int max_inputs() const override { return 1 << 20; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& first = inputs[0].shape;
        const int dim = dimension(attrs, first.rank());
        std::int64_t size = 0;
        for (const TensorSpec& input : inputs) {
            require(input.dtype == inputs[0].dtype, "inputs are of types ",
                    name_of(inputs[0].dtype), " and ", name_of(input.dtype),
                    "; they must be the same");
            if (input.shape.rank() != first.rank() ||
                input.shape.with(dim, 0) != first.with(dim, 0))
                fail(ErrorKind::invalid_argument, "inputs ", first.str(), " and ",
                     input.shape.str(), " differ in more than dimension ", dim);
            size += input.shape[dim];
        }
        return {{first.with(dim, size), inputs[0].dtype}};
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        Graph& graph = context.graph;
        const int dim = dimension(context.node.attrs, graph.shape(dy).rank());
        std::int64_t begin = 0;
        for (std::size_t i = 0; i < context.node.inputs.size(); ++i) {
            const std::int64_t end = begin + graph.shape(context.node.inputs[i])[dim];
            if (context.wanted[i])
                context.input_gradients[i] =
                    graph.add1("Slice", cat(context.node.name, "/backward.", i), {dy},
                               {{"dim", std::int64_t{dim}}, {"begin", begin}, {"end", end}});
            begin = end;
        }
    }

    void oracle(OracleCall& call) const override {
        std::vector<TensorSpec> specs;
        for (const HostArray& input : call.inputs) specs.push_back({input.shape, input.dtype});
        HostArray& y = call.outputs[0];
        y.shape = infer(call.attrs, specs)[0].shape;
        y.dtype = specs[0].dtype;
        y.data.resize(static_cast<std::size_t>(y.shape.numel()));
        const int dim = dimension(call.attrs, y.shape.rank());
        std::int64_t position = 0;
        for (const HostArray& x : call.inputs) {
            visit(x.shape, y.shape, dim, position,
                  [&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
            position += x.shape[dim];
        }
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& dy = call.output_gradients[0];
        const int dim = dimension(call.attrs, dy.shape.rank());
        std::int64_t position = 0;
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            HostArray& dx = call.input_gradients[i];
            dx = call.inputs[i];
            visit(dx.shape, dy.shape, dim, position,
                  [&](std::size_t from, std::size_t to) { dx.data[from] = dy.data[to]; });
            position += dx.shape[dim];
        }
    }
};

}  // namespace

void register_concat(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Concat>());
    add_join_engine(engines);
    add_copy_engines(engines, movement);
}

}  // namespace dlprim::concat
