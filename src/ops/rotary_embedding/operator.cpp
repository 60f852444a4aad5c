// SPDX-License-Identifier: MIT
// RotaryEmbedding: turns pairs of features by angles that depend on the position (Su et al.,
// "RoFormer", 2021).
//
// It is one Pointwise: the pair is a dimension of 2, and each of its elements is the sum over both
// elements, times the entries of the rotation's matrix. So no halves are sliced and joined again,
// and the gradient, by the transposed matrix, is one Pointwise, too.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/indexed_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"

namespace dlprim::rotary_embedding {

namespace {

constexpr std::size_t positions_at = 3;

struct Options {
    bool interleaved;
    std::int64_t turned;  ///< features
    Shape tables;         ///< of cosines and sines once rows are picked

    Options(const Attrs& attrs, const std::vector<Shape>& given)
        : interleaved(attrs.boolean("interleaved")), turned(attrs.integer("rotary_dim")) {
        const Shape &x = given[0], &cosines = given[1];
        require(x.rank() >= 1, "an input without dimensions has no features");
        const std::int64_t features = x[-1];
        if (turned == 0) turned = features;
        if (attrs.integer("rotary_dim") == 0)
            require(turned % 2 == 0 && turned > 0, "the input has ", features,
                    " features; an even number is needed");
        require(turned <= features && turned % 2 == 0 && turned > 0, "rotary_dim is ", turned,
                "; it must be even and at most the ", features, " features of the input");
        require(cosines == given[2], "cosines have shape ", cosines.str(), ", sines ",
                given[2].str());
        require(cosines.rank() >= 1 && cosines[-1] == turned / 2, "cosines of shape ",
                cosines.str(), " do not end in ", turned / 2, ", one for each pair");
        tables = cosines;
        if (given.size() > positions_at) {
            require(cosines.rank() == 2, "positions pick rows of a matrix, the cosines have shape ",
                    cosines.str());
            Ints dims = given[positions_at].to_vector();
            dims.push_back(turned / 2);
            tables = Shape(dims);
        }
        const Shape pairs = x.with(x.rank() - 1, turned / 2);
        require(tables.rank() <= x.rank() && broadcast(tables, pairs) == pairs, "angles of shape ",
                tables.str(), " do not broadcast to the pairs ", pairs.str(), " of the input");
    }
    /// Whether the features are blocks as large as the first, which is turned.
    bool has_blocks(std::int64_t features) const { return features % turned == 0; }
    /// `x` but for its features, and these as blocks of pairs: [..., blocks, row, column, pairs],
    /// or interleaved [..., blocks, pairs, row, column].
    Shape in_pairs(const Shape& x, std::int64_t blocks, std::int64_t row,
                   std::int64_t column) const {
        Ints dims = x.to_vector();
        const std::int64_t pairs = turned / 2;
        dims.pop_back();
        for (const std::int64_t size :
             interleaved ? Ints{blocks, pairs, row, column} : Ints{blocks, row, column, pairs})
            dims.push_back(size);
        return Shape(dims);
    }
    /// The program over such shapes: block 0 times the matrix of its rotation, and the others as
    /// they are.
    std::string code(int rank, std::int64_t blocks) const {
        const int row = rank + (interleaved ? 1 : 0);
        const std::string block = cat("index(", rank - 1, ")"), i = cat("index(", row, ")"),
                          j = cat("index(", row + 1, ")");
        std::string element = cat(i, " == ", j, " ? x0 * x1 : ", i, " == 0 ? -x0 * x2 : x0 * x2");
        if (blocks > 1)
            element = cat(block, " > 0 ? (", i, " == ", j, " ? x0 : 0) : (", element, ")");
        return cat("y0 = sum[", row + 1, "](", element, ")");
    }
};

template <typename Inputs>
Options options_of(const Attrs& attrs, const Inputs& inputs) {
    std::vector<Shape> shapes;
    shapes.reserve(inputs.size());
    for (const auto& input : inputs) shapes.push_back(input.shape);
    return {attrs, shapes};
}

/// Calls visit(position of the pair's first element, of its second, of the angle) for each pair,
/// where the angle is in the tables as they are given.
template <typename Visit>
void for_each_pair(const Options& options, const std::vector<HostArray>& inputs, Visit&& visit) {
    const Shape& x = inputs[0].shape;
    const auto features = static_cast<std::size_t>(x[-1]),
               pairs = static_cast<std::size_t>(options.turned / 2);
    for_each_position(x.with(x.rank() - 1, options.turned / 2),
                      [&](const auto& index, std::size_t linear) {
                          const std::size_t pair = linear % pairs, row = linear / pairs * features;
                          std::size_t angle = broadcast_offset(options.tables, index);
                          if (inputs.size() > positions_at) {
                              const double position = inputs[positions_at].data[angle / pairs];
                              angle = static_cast<std::size_t>(position) * pairs + angle % pairs;
                          }
                          const std::size_t step = options.interleaved ? 1 : pairs;
                          const std::size_t first = row + (options.interleaved ? 2 * pair : pair);
                          visit(first, first + step, angle);
                      });
}

class RotaryEmbedding final : public DeclaredOperator<ops::RotaryEmbedding, IndexedOperator> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 4; }
    IndexInput index_input(const Attrs&, std::span<const TensorSpec> inputs) const override {
        if (inputs.size() <= positions_at) return {};
        return {static_cast<int>(positions_at), {inputs[1].shape[0]}, false};
    }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        for (std::size_t i = 0; i < positions_at; ++i)
            require(is_float(inputs[i].dtype) && inputs[i].dtype == inputs[0].dtype,
                    "the input, cosines and sines must be of one float type, got ",
                    name_of(inputs[0].dtype), " and ", name_of(inputs[i].dtype));
        options_of(attrs, inputs);
        return {inputs[0]};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const Shape x = graph.shape(node.inputs[0]);
        std::vector<Shape> shapes;
        for (const ValueId id : node.inputs) shapes.push_back(graph.shape(id));
        const Options options(node.attrs, shapes);
        const bool whole = options.has_blocks(x[-1]);
        const std::int64_t last = x.rank() - 1, blocks = whole ? x[-1] / options.turned : 1;
        const auto part = [&](std::int64_t begin, std::int64_t end) {
            return graph.add1("Slice", node.name + "/part", {node.inputs[0]},
                              Attrs{{"dim", last}, {"begin", begin}, {"end", end}});
        };
        std::vector<ValueId> inputs{graph.reshape(node.name + "/pairs",
                                                  whole ? node.inputs[0] : part(0, options.turned),
                                                  options.in_pairs(x, blocks, 1, 2))};
        for (const std::size_t i : {1, 2}) {
            ValueId table = node.inputs[i];
            if (node.inputs.size() > positions_at)
                table = graph.add1("Gather", node.name + "/positions",
                                   {table, node.inputs[positions_at]}, Attrs{{"from_end", false}});
            inputs.push_back(graph.reshape(node.name + "/angles", table,
                                           options.in_pairs(options.tables, 1, 1, 1)));
        }
        ValueId y = pointwise_over(graph, node.name, options.code(x.rank(), blocks), inputs, {},
                                   options.in_pairs(x, blocks, 2, 2))[0];
        y = graph.reshape(node.name + "/shape", y,
                          whole ? x : x.with(static_cast<int>(last), options.turned));
        outputs = {whole ? y
                         : graph.add1("Concat", node.name + "/joined",
                                      {y, part(options.turned, x[-1])}, Attrs{{"dim", last}})};
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray &x = call.inputs[0], &cosines = call.inputs[1], &sines = call.inputs[2];
        HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
        y.data = x.data;
        for_each_pair(options_of(call.attrs, call.inputs), call.inputs,
                      [&](std::size_t a, std::size_t b, std::size_t angle) {
                          const double c = cosines.data[angle], s = sines.data[angle];
                          y.data[a] = x.data[a] * c - x.data[b] * s;
                          y.data[b] = x.data[a] * s + x.data[b] * c;
                      });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray &x = call.inputs[0], &cosines = call.inputs[1], &sines = call.inputs[2];
        const std::vector<double>& dy = call.output_gradients[0].data;
        call.input_gradients.assign(call.inputs.size(), {});
        for (std::size_t i = 0; i < positions_at; ++i)
            make_array(call.input_gradients, i, call.inputs[i].shape, x.dtype);
        std::vector<double>&dx = call.input_gradients[0].data, &dc = call.input_gradients[1].data,
        &ds = call.input_gradients[2].data;
        dx = dy;
        for_each_pair(options_of(call.attrs, call.inputs), call.inputs,
                      [&](std::size_t a, std::size_t b, std::size_t angle) {
                          const double c = cosines.data[angle], s = sines.data[angle];
                          dx[a] = dy[a] * c + dy[b] * s;
                          dx[b] = dy[b] * c - dy[a] * s;
                          dc[angle] += dy[a] * x.data[a] + dy[b] * x.data[b];
                          ds[angle] += dy[b] * x.data[a] - dy[a] * x.data[b];
                      });
    }
};

}  // namespace

void register_rotary_embedding(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<RotaryEmbedding>());
}

}  // namespace dlprim::rotary_embedding
