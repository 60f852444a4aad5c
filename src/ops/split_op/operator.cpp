// SPDX-License-Identifier: MIT
// Split: cuts a dimension into `parts` equal pieces, one per output. It is lowered to Slices. As it
// is one operator, its gradient is one Concat instead of a sum of padded pieces.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"

namespace dlprim::split_op {

namespace {

struct Options {
    int dim;
    std::int64_t parts, piece;

    Options(const Attrs& attrs, const Shape& x) {
        const std::int64_t given = attrs.integer("dim");
        parts = attrs.integer("parts");
        require(given >= -x.rank() && given < x.rank(), "option dim is ", given, ", the input ", x,
                " has ", x.rank(), " dimensions");
        dim = static_cast<int>(given < 0 ? given + x.rank() : given);
        require(x[dim] % parts == 0, "dimension ", dim, " of ", x, " cannot be cut in ", parts,
                " equal parts");
        piece = x[dim] / parts;
    }
};

class Split : public DeclaredOperator<ops::Split> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs& attrs) const override {
        return static_cast<int>(attrs.integer("parts"));
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options(attrs, inputs[0].shape);
        const TensorSpec piece{inputs[0].shape.with(options.dim, options.piece), inputs[0].dtype};
        return std::vector<TensorSpec>(static_cast<std::size_t>(options.parts), piece);
    }

    void gradient(GradientContext& context) const override {
        if (!context.wanted[0]) return;
        Graph& graph = context.graph;
        const Node& node = context.node;
        std::vector<ValueId> pieces(context.output_gradients.begin(),
                                    context.output_gradients.end());
        ValueId zeros = no_value;
        for (ValueId& piece : pieces) {
            if (piece != no_value) continue;
            if (zeros == no_value)
                zeros =
                    graph.add1("Pointwise", node.name + "/zeros", {},
                               Attrs{{"code", std::string("y0 = 0")},
                                     {"shape", Ints(graph.shape(node.outputs[0]).to_vector())}});
            piece = zeros;
        }
        context.input_gradients[0] = pieces.size() == 1
                                         ? pieces[0]
                                         : graph.add1("Concat", node.name + "/backward", pieces,
                                                      Attrs{{"dim", node.attrs.integer("dim")}});
    }

    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options(node.attrs, graph.shape(node.inputs[0]));
        if (options.parts == 1) {
            outputs = {node.inputs[0]};
            return true;
        }
        for (std::int64_t i = 0; i < options.parts; ++i)
            outputs.push_back(graph.add1("Slice", cat(node.name, "/", i), {node.inputs[0]},
                                         Attrs{{"dim", std::int64_t{options.dim}},
                                               {"begin", i * options.piece},
                                               {"end", (i + 1) * options.piece}}));
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Options options(call.attrs, x.shape);
        call.outputs.resize(static_cast<std::size_t>(options.parts));
        for (HostArray& y : call.outputs) {
            y.shape = x.shape.with(options.dim, options.piece);
            y.data.resize(static_cast<std::size_t>(y.shape.numel()));
        }
        visit(x.shape, options, [&](std::size_t part, std::size_t from, std::size_t to) {
            call.outputs[part].data[to] = x.data[from];
        });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Options options(call.attrs, x.shape);
        call.input_gradients.resize(1);
        HostArray& dx = call.input_gradients[0];
        dx.shape = x.shape;
        dx.data.resize(x.data.size());
        visit(x.shape, options, [&](std::size_t part, std::size_t from, std::size_t to) {
            dx.data[from] = call.output_gradients[part].data[to];
        });
    }

  private:
    /// f(part, index in the input, index in the part's output)
    template <typename F>
    static void visit(const Shape& x, const Options& options, F&& f) {
        const std::int64_t outer = x.product(0, options.dim),
                           inner = x.product(options.dim + 1, x.rank());
        for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t d = 0; d < x[options.dim]; ++d)
                for (std::int64_t i = 0; i < inner; ++i)
                    f(static_cast<std::size_t>(d / options.piece),
                      static_cast<std::size_t>((o * x[options.dim] + d) * inner + i),
                      static_cast<std::size_t>((o * options.piece + d % options.piece) * inner +
                                               i));
    }
};

}  // namespace

void register_split_op(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Split>());
}

}  // namespace dlprim::split_op
