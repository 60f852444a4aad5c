// SPDX-License-Identifier: MIT
// Slice: elements [begin, end) of one dimension. Its gradient is that part of the input's gradient.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "ops/slice/options.hpp"

namespace dlprim::slice {

namespace {

/// Visits the oracle's elements: f(index in the input, index in the output).
template <typename F>
void visit(const Shape& input, const Options& options, F&& f) {
    const std::int64_t outer = input.product(0, options.dim);
    const std::int64_t inner = input.product(options.dim + 1, input.rank());
    std::size_t to = 0;
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = options.begin; i < options.end; ++i)
            for (std::int64_t k = 0; k < inner; ++k)
                f(static_cast<std::size_t>((o * input[options.dim] + i) * inner + k), to++);
}

class Slice : public DeclaredOperator<ops::Slice>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& x = inputs[0].shape;
        const Options options(attrs, x);
        return {{x.with(options.dim, options.end - options.begin), inputs[0].dtype}};
    }

    bool is_beginning(const Node& node, const Shape& input) const override {
        const Options options(node.attrs, input);
        // A slice of the first samples, which come first in every layout.
        return options.dim == 0 && options.begin == 0;
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Shape& x = context.graph.shape(context.node.inputs[0]);
        const Options options(context.node.attrs, x);
        context.input_gradients[0] = dy;
        context.parts[0] = {options.dim, options.begin};
    }

    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& y = call.outputs[0];
        const Options options(call.attrs, x.shape);
        y.shape = x.shape.with(options.dim, options.end - options.begin);
        y.dtype = x.dtype;
        y.data.resize(static_cast<std::size_t>(y.shape.numel()));
        visit(x.shape, options,
              [&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        HostArray& dx = call.input_gradients[0];
        const HostArray& dy = call.output_gradients[0];
        dx = call.inputs[0];
        dx.data.assign(dx.data.size(), 0.0);
        visit(dx.shape, Options(call.attrs, dx.shape),
              [&](std::size_t from, std::size_t to) { dx.data[from] = dy.data[to]; });
    }
};

}  // namespace

void register_slice(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Slice>());
    add_copy_engines(engines, movement);
}

}  // namespace dlprim::slice
