// SPDX-License-Identifier: MIT
// LinearCrossEntropyRows: the losses of rows, chunk by chunk (Wijmans et al., "Cut Your Losses in
// Large-Vocabulary Language Models", 2024, in the exact form).
//
// Forward computes the logits of a chunk, keeps the logarithm of each row's sum of exponentials,
// and forgets the logits. Backward computes them again:
//
//   for each chunk of rows:   logits = x W^T + b
//                             G = (exp(logits - lse) - [column == label]) * dy
//                             dx = G W;  dW += G^T x;  db += the sums of G's columns
//
// The order of the sums is that of the chunks, so every run gives the same bits.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "ops/linear_cross_entropy/operator.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace dlprim::linear_cross_entropy {

namespace {

/// Chunks begin at multiples of this many rows where they are larger, so that tiles are whole.
constexpr std::int64_t whole_rows = 64;

struct RowsOptions : ops::LinearCrossEntropy {
    static constexpr std::string_view type = rows_type;
};

/// As many rows as fit, evenly over the chunks.
std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t outputs, DType dtype,
                           std::int64_t chunk_bytes) {
    const std::int64_t row_bytes = outputs * static_cast<std::int64_t>(size_of(dtype));
    const std::int64_t most = std::clamp<std::int64_t>(chunk_bytes / row_bytes, 1, rows);
    const std::int64_t even = ceil_div(rows, ceil_div(rows, most));
    const std::int64_t whole = ceil_div(even, whole_rows) * whole_rows;
    return whole <= most ? whole : even;
}

/// The nodes of one chunk after the other.
class Chunks {
  public:
    Chunks(Graph& graph, const Node& node, std::string name)
        : graph_(graph),
          inputs_(node.inputs),
          name_(std::move(name)),
          outputs_(node.attrs.integer("outputs")),
          ignored_(node.attrs.integer("ignore_index")),
          rows_(graph.shape(inputs_[0])[0]),
          step_(rows_of_chunk(rows_, outputs_, graph.spec(inputs_[0]).dtype,
                              node.attrs.integer("chunk_bytes"))) {}

    /// Calls visit() for each chunk, for which part() and logits() then are.
    template <typename Visit>
    void for_each(Visit&& visit) {
        for (begin_ = 0; begin_ < rows_; begin_ += step_) visit();
    }

    std::string named(const char* what) const {
        return step_ < rows_ ? cat(name_, "/", begin_ / step_, "/", what) : cat(name_, "/", what);
    }
    /// The chunk's rows of a value [N, ...].
    ValueId part(const char* what, ValueId value) {
        if (step_ >= rows_) return value;
        return graph_.add1("Slice", named(what), {value},
                           Attrs{{"dim", std::int64_t{0}}, {"begin", begin_}, {"end", end()}});
    }
    /// The chunk's rows of a value [N], as a column.
    ValueId column(const char* what, ValueId value) {
        return graph_.reshape(named(what), part(what, value), Shape{end() - begin_, 1});
    }
    ValueId labels() { return column("labels", inputs_[1]); }
    ValueId x() { return part("x", inputs_[0]); }
    ValueId weight() const { return inputs_[2]; }
    bool has_bias() const { return inputs_.size() > 3; }

    ValueId logits() {
        std::vector<ValueId> operands{x(), weight()};
        if (has_bias()) operands.push_back(inputs_[3]);
        return graph_.add1("InnerProduct", named("logits"), operands,
                           Attrs{{"outputs", outputs_}, {"bias", has_bias()}});
    }
    /// `value` where label operand `label` counts and is a class, else 0.
    std::string counted(const std::string& label, const std::string& value) const {
        std::string counts = cat(label, " >= 0 && ", label, " < ", outputs_);
        if (ignored_ != no_label) counts += cat(" && ", label, " != ", ignored_);
        return cat("(", counts, " ? ", value, " : 0)");
    }
    /// The rows of all chunks below each other.
    ValueId joined(const std::string& name, const std::vector<ValueId>& parts) {
        if (parts.size() == 1) return parts[0];
        return graph_.add1("Concat", name, parts, Attrs{{"dim", std::int64_t{0}}});
    }

  private:
    std::int64_t end() const { return std::min(begin_ + step_, rows_); }

    Graph& graph_;
    std::vector<ValueId> inputs_;
    std::string name_;
    std::int64_t outputs_, ignored_, rows_, step_, begin_ = 0;
};

class Rows final : public InternalOperator<RowsOptions> {
  public:
    int min_inputs() const override { return 2; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int outputs(const Attrs&) const override { return 2; }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec>) const override {
        return {1, attrs.integer("outputs")};
    }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        const TensorSpec row{Shape{inputs[0].shape[0]}, inputs[0].dtype};
        return {row, row};
    }

    bool lower(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        Chunks chunks(graph, node, node.name);
        std::vector<ValueId> losses, logarithms;
        chunks.for_each([&] {
            const ValueId logits = chunks.logits(), label = chunks.labels();
            const ValueId most =
                graph.pointwise1(chunks.named("most"), "y0 = max[1](x0)", {logits});
            const auto sums =
                graph.pointwise(chunks.named("sums"),
                                "y0 = sum[1](exp(x0 - x1)); y1 = sum[1](index(1) == x2 ? x0 : 0)",
                                {logits, most, label});
            const auto made = graph.pointwise(
                chunks.named("loss"),
                cat("t = x1 + log(x0); y0 = t; y1 = ", chunks.counted("x3", "t - x2")),
                {sums[0], most, sums[1], label});
            logarithms.push_back(made[0]);
            losses.push_back(made[1]);
        });
        const Shape rows = graph.shape(node.outputs[0]);
        outputs = {
            graph.reshape(node.name + "/losses", chunks.joined(node.name + "/joined", losses),
                          rows),
            graph.reshape(node.name + "/logarithms",
                          chunks.joined(node.name + "/joined_logarithms", logarithms), rows)};
        return true;
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value) return;
        Graph& graph = context.graph;
        const Node& node = context.node;
        const std::string name = node.name + "/backward";
        Chunks chunks(graph, node, name);
        const std::string code =
            cat("y0 = ", chunks.counted("x2", "(exp(x0 - x1) - (index(1) == x2 ? 1 : 0)) * x3"));
        std::vector<ValueId> dx;
        ValueId dw = no_value, db = no_value;
        const auto add = [&](const char* what, ValueId& sum, ValueId term) {
            sum =
                sum == no_value ? term : graph.add1("Elementwise", chunks.named(what), {term, sum});
        };
        chunks.for_each([&] {
            const ValueId g =
                graph.pointwise1(chunks.named("logits_gradient"), code,
                                 {chunks.logits(), chunks.column("logarithms", node.outputs[1]),
                                  chunks.labels(), chunks.column("dy", dy)});
            if (context.wanted[0])
                dx.push_back(graph.add1("MatMul", chunks.named("dx"), {g, chunks.weight()}));
            if (context.wanted[2])
                add("dw_sum", dw,
                    graph.add1("MatMul", chunks.named("dw"), {g, chunks.x()},
                               Attrs{{"transpose_a", true}}));
            if (chunks.has_bias() && context.wanted[3])
                add("db_sum", db, graph.pointwise1(chunks.named("db"), "y0 = sum[0](x0)", {g}));
        });
        if (context.wanted[0]) context.input_gradients[0] = chunks.joined(name + "/joined", dx);
        if (dw != no_value) context.input_gradients[2] = dw;
        if (db != no_value)
            context.input_gradients[3] =
                graph.reshape(name + "/db_shape", db, graph.shape(node.inputs[3]));
    }
};

}  // namespace

std::unique_ptr<Operator> make_rows() {
    return std::make_unique<Rows>();
}

}  // namespace dlprim::linear_cross_entropy
