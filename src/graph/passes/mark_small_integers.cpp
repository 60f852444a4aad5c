// SPDX-License-Identifier: MIT
// mark_small_integers: finds products of floats whose factors hold small integers, as those of
// quantised networks do:
//
//     uint8 x, zero point -> Pointwise x0 - x1 -> float -> MatMul or Convolution
//
// The types say so: a byte, or the difference of two, is at most 255 in magnitude. Nodes that only
// move elements, or pad them with zeros, keep that.
#include "engine/pointwise/program.hpp"
#include "engine/small_integers.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>
#include <array>

namespace dlprim {

namespace {

class SmallIntegers {
  public:
    explicit SmallIntegers(const Graph& graph) : graph_(graph), holds_(graph.values.size(), 0) {
        for (const Node& node : graph_.nodes)
            if (!node.removed && makes(node))
                for (const ValueId id : node.outputs) holds_[static_cast<std::size_t>(id)] = 1;
    }
    bool holds(ValueId id) const { return holds_[static_cast<std::size_t>(id)] != 0; }

  private:
    bool is_byte(ValueId id) const {
        const DType dtype = graph_.spec(id).dtype;
        return dtype == DType::u8 || dtype == DType::i8;
    }

    /// Nodes come in order, so what makes their inputs has been seen.
    bool makes(const Node& node) const {
        const std::string_view type = node.op->type();
        if (graph_.spec(node.outputs[0]).dtype != DType::f32) return false;
        if (type == "Cast") return is_byte(node.inputs[0]) && !node.attrs.boolean("reinterpret");
        if (type == "Pointwise") return is_difference(node);
        return moves(node) && std::all_of(node.inputs.begin(), node.inputs.end(),
                                          [&](ValueId id) { return holds(id); });
    }

    bool is_difference(const Node& node) const {
        if (node.inputs.size() != 2 || !is_byte(node.inputs[0]) || !is_byte(node.inputs[1]))
            return false;
        const pointwise::Program program = pointwise::parse(node.attrs.text("code"));
        if (program.outputs.size() != 1) return false;
        const pointwise::Output& out = program.outputs[0];
        const auto is_input = [&](std::size_t i) {
            return out.value->args[i]->kind == pointwise::Expr::Kind::input;
        };
        return out.kind == pointwise::Output::Kind::elementwise &&
               out.value->kind == pointwise::Expr::Kind::call && out.value->function == "sub" &&
               is_input(0) && is_input(1);
    }

    static bool moves(const Node& node) {
        static constexpr std::array movers{"Slice", "Split", "Transpose", "Concat", "Flip"};
        const std::string_view type = node.op->type();
        if (type == "Pad")
            return node.attrs.text("mode") == "constant" && node.attrs.number("value") == 0;
        return node.op->is_view() || std::find(movers.begin(), movers.end(), type) != movers.end();
    }

    const Graph& graph_;
    std::vector<char> holds_;  ///< by ValueId
};

}  // namespace

void mark_small_integers(Graph& graph) {
    const SmallIntegers integers(graph);
    for (Node& node : graph.nodes) {
        if (node.removed || (node.op->type() != "MatMul" && node.op->type() != "Convolution"))
            continue;
        if (integers.holds(node.inputs[0]) && integers.holds(node.inputs[1]))
            node.attrs.set(small_integers_attr, true);
    }
}

}  // namespace dlprim
