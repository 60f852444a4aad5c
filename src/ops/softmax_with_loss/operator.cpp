// SPDX-License-Identifier: MIT
// SoftmaxWithLoss: the cross entropy of logits [N, C, ...] and labels [N, ...], averaged over the
// labels that count: a logarithmic Softmax followed by an NLLLoss.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/oracle_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace dlprim::softmax_with_loss {

namespace {

/// The value of ignore_index if every label counts.
constexpr std::int64_t no_label = std::numeric_limits<std::int64_t>::min();

/// The logits of one label, a step apart.
struct Row {
    const double* values = nullptr;
    std::size_t classes = 0, step = 1, label = 0;
    double top = 0, sum = 0;  ///< the maximum, and the sum of exp(x - top)
    double share(std::size_t c) const { return std::exp(values[c * step] - top) / sum; }
};

/// Calls visit(row, position of its first logit) for each label that counts, and returns their
/// number.
template <typename Visit>
std::size_t for_each_row(const Attrs& attrs, const HostArray& x, const HostArray& labels,
                         Visit&& visit) {
    const auto ignored = static_cast<double>(attrs.integer("ignore_index"));
    const AxisView view(x.shape, 1);
    std::size_t count = 0;
    for (std::size_t at = 0; at < view.outer * view.inner; ++at) {
        const double label = labels.data[at];
        if (label == ignored) continue;
        require(label >= 0 && label < static_cast<double>(view.size), "label ", label,
                " is out of range: there are ", view.size, " classes");
        const std::size_t first = view.at(at / view.inner, 0, at % view.inner);
        Row row{x.data.data() + first, view.size, view.inner, static_cast<std::size_t>(label)};
        row.top = row.values[0];
        for (std::size_t c = 1; c < row.classes; ++c)
            row.top = std::max(row.top, row.values[c * row.step]);
        for (std::size_t c = 0; c < row.classes; ++c)
            row.sum += std::exp(row.values[c * row.step] - row.top);
        visit(row, first);
        ++count;
    }
    return count;
}

class SoftmaxWithLoss : public DeclaredOperator<ops::SoftmaxWithLoss> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 2; }
    std::pair<int, std::int64_t> label_input(const Attrs&,
                                             std::span<const TensorSpec> inputs) const override {
        return {1, inputs[0].shape[1]};
    }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        const Shape &x = inputs[0].shape, &label = inputs[1].shape;
        require(is_float(inputs[0].dtype), "logits have dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        require(x.rank() >= 2, "logits have shape ", x,
                ", [batch, classes] or [batch, classes, height, width] is needed");
        Ints dims = x.to_vector();
        dims[1] = 1;
        const Shape kept(dims);
        dims.erase(dims.begin() + 1);
        const Shape needed(dims);
        require(label == needed || label == kept, "labels have shape ", label,
                ", the logits of shape ", x, " need ", needed);
        return {{Shape{1}, inputs[0].dtype}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const ValueId logarithms = graph.add1("Softmax", node.name + "/log_softmax",
                                              {node.inputs[0]}, Attrs{{"log", true}});
        Attrs how;
        if (node.attrs.integer("ignore_index") != no_label)
            how.set("ignore_index", node.attrs.integer("ignore_index"));
        outputs = graph.add("NLLLoss", node.name, {logarithms, node.inputs[1]}, how);
        graph.nodes.back().name = node.name;
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& y = make_array(call.outputs, 0, Shape{1}, x.dtype);
        const std::size_t count =
            for_each_row(call.attrs, x, call.inputs[1], [&](const Row& row, std::size_t) {
                y.data[0] += row.top + std::log(row.sum) - row.values[row.label * row.step];
            });
        y.data[0] /= static_cast<double>(count);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        call.input_gradients.assign(2, {});
        HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
        HostArray& terms = make_array(call.terms, 0, x.shape, x.dtype);
        const std::size_t count =
            for_each_row(call.attrs, x, call.inputs[1], [](const Row&, std::size_t) {});
        const double flow = call.output_gradients[0].data[0] / static_cast<double>(count);
        for_each_row(call.attrs, x, call.inputs[1], [&](const Row& row, std::size_t first) {
            for (std::size_t c = 0; c < row.classes; ++c) {
                const double p = row.share(c), wanted = c == row.label ? 1 : 0;
                dx.data[first + c * row.step] = flow * (p - wanted);
                terms.data[first + c * row.step] = std::abs(flow) * (p + wanted);
            }
        });
    }
};

}  // namespace

void register_softmax_with_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<SoftmaxWithLoss>());
}

}  // namespace dlprim::softmax_with_loss
