// SPDX-License-Identifier: MIT
// join_norms: RMSNorm becomes a part of the products that alone read its result, if these together
// take less time so, as they do for a few rows:
//
//     x -> norm -> three products                         becomes    x -> three NormedProducts
//     x -> norm -> two products -> silu(one) * other      becomes    x -> one NormedProduct
#include "engine/activations.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <dlprim/context.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

/// The activation f of a program y0 = f(x0) * x1, or an empty text.
std::string gate_of(const Node& node) {
    if (node.op->type() != "Pointwise" || node.inputs.size() != 2) return {};
    const std::string code = pointwise::print(pointwise::parse(node.attrs.text("code")));
    for (const std::string& name : activation_names()) {
        const Activation& f = find_activation(name);
        if (f.alpha != 0 || f.beta != 0) continue;
        const std::string gate = "x = x0; alpha = 0; beta = 0; y0 = (" + f.expression + ") * x1";
        if (pointwise::print(pointwise::parse(gate)) == code) return name;
    }
    return {};
}

class NormJoiner {
  public:
    NormJoiner(Graph& graph, double launch_seconds,
               const std::function<double(const Graph&, const Node&)>& seconds)
        : graph_(graph), launch_seconds_(launch_seconds), seconds_(seconds) {}

    void run() {
        find_readers();
        const std::size_t count = graph_.nodes.size();
        for (std::size_t i = 0; i < count; ++i) {
            const std::optional<Norm> norm = norm_at(static_cast<NodeId>(i));
            if (norm && !join(*norm, true)) join(*norm, false);
        }
        graph_.sort();
        graph_.remove_dead();
    }

  private:
    /// A norm, and the products that read it.
    struct Norm {
        NodeId normalize, scaled;
        ValueId x, scale;
        double eps;
        std::vector<NodeId> products;
    };

    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    Node& node(NodeId id) { return graph_.nodes[at(id)]; }

    void find_readers() {
        readers_.resize(graph_.values.size());
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            if (!graph_.nodes[i].removed)
                for (const ValueId input : graph_.nodes[i].inputs)
                    readers_[at(input)].push_back(static_cast<NodeId>(i));
        for (const auto& output : graph_.outputs) seen_.insert(output.first);
    }

    /// Adds those who read the value's elements, through views, and nothing if others see them.
    void add_readers(ValueId value, std::vector<NodeId>& readers) {
        if (seen_.count(value) > 0) readers.push_back(-1);
        for (const NodeId reader : readers_[at(value)])
            if (node(reader).op->is_view())
                add_readers(node(reader).outputs[0], readers);
            else
                readers.push_back(reader);
    }
    std::vector<NodeId> readers_of(ValueId value) {
        std::vector<NodeId> readers;
        add_readers(value, readers);
        return readers;
    }

    ValueId root(ValueId id) {
        for (NodeId maker = graph_.value(id).producer; maker >= 0 && node(maker).op->is_view();
             maker = graph_.value(id).producer)
            id = node(maker).inputs[0];
        return id;
    }

    /// Whether it is a product of the rows with a matrix in blocks, without more.
    bool is_product(const Node& reader, ValueId rows, const Shape& shape) {
        return reader.op->type() == "InnerProduct" && reader.engine.empty() &&
               reader.epilogue.empty() && !reader.attrs.text("blocks").empty() &&
               root(reader.inputs[0]) == rows && graph_.shape(reader.inputs[0]) == shape;
    }

    std::optional<Norm> norm_at(NodeId id) {
        const Node& normalize = node(id);
        if (normalize.removed || normalize.op->type() != "NormalizeRows" ||
            normalize.attrs.boolean("centered") || !readers_[at(normalize.outputs[1])].empty())
            return std::nullopt;
        const std::vector<NodeId> next = readers_of(normalize.outputs[0]);
        if (next.size() != 1 || next[0] < 0) return std::nullopt;
        const Node& scaled = node(next[0]);
        const Shape& shape = graph_.shape(normalize.inputs[0]);
        if (scaled.op->type() != "Pointwise" || scaled.attrs.text("code") != "y0 = x0 * x1" ||
            root(scaled.inputs[0]) != normalize.outputs[0] ||
            graph_.shape(root(scaled.inputs[1])) != Shape{shape[1]})
            return std::nullopt;
        const std::vector<NodeId> products = readers_of(scaled.outputs[0]);
        const bool all = std::all_of(products.begin(), products.end(), [&](NodeId reader) {
            return reader >= 0 && is_product(node(reader), scaled.outputs[0], shape);
        });
        if (products.empty() || !all) return std::nullopt;
        return Norm{id,
                    next[0],
                    normalize.inputs[0],
                    root(scaled.inputs[1]),
                    normalize.attrs.number("eps"),
                    products};
    }

    /// The node that multiplies two products without bias as a gate, and its activation; -1 if
    /// there is none.
    std::pair<NodeId, std::string> gate_behind(const Norm& norm) {
        if (norm.products.size() != 2) return {-1, {}};
        const ValueId a = node(norm.products[0]).outputs[0], b = node(norm.products[1]).outputs[0];
        for (const NodeId product : norm.products) {
            const Node& each = node(product);
            const std::vector<NodeId>& readers = readers_[at(each.outputs[0])];
            if (each.attrs.boolean("bias") || seen_.count(each.outputs[0]) > 0 ||
                readers.size() != 1 || readers[0] != readers_[at(a)][0])
                return {-1, {}};
        }
        const NodeId multiply = readers_[at(a)][0];
        const std::set<ValueId> read(node(multiply).inputs.begin(), node(multiply).inputs.end());
        const bool alike =
            graph_.spec(a) == graph_.spec(b) && node(norm.products[0]).attrs.text("blocks") ==
                                                    node(norm.products[1]).attrs.text("blocks");
        if (!alike || read != std::set<ValueId>{a, b}) return {-1, {}};
        std::string gate = gate_of(node(multiply));
        if (gate.empty()) return {-1, {}};
        return {multiply, std::move(gate)};
    }

    /// Adds a NormedProduct that makes what `made_by` makes.
    NodeId add(const Norm& norm, NodeId product, NodeId made_by, const std::string& gate,
               ValueId other) {
        const Node linear = node(product);
        std::vector<ValueId> inputs = linear.inputs;
        inputs[0] = norm.x;
        inputs.push_back(norm.scale);
        if (!gate.empty()) inputs.push_back(other);
        graph_.add("NormedProduct", node(made_by).name + "/normed", std::move(inputs),
                   {{"blocks", linear.attrs.text("blocks")},
                    {"gate", gate},
                    {"eps", norm.eps},
                    {"bias", linear.attrs.boolean("bias")}});
        Node& made = graph_.nodes.back();
        made.part = linear.part;
        made.precision = linear.precision;
        made.frozen = linear.frozen;
        return static_cast<NodeId>(graph_.nodes.size() - 1);
    }

    /// Returns whether it pays, and joins them if so.
    bool join(const Norm& norm, bool gated) {
        std::pair<NodeId, std::string> gate{-1, {}};
        if (gated) gate = gate_behind(norm);
        if (gated && gate.first < 0) return false;
        std::vector<std::pair<NodeId, NodeId>> pairs;  // a new node, and who made its result before
        if (gated) {
            const ValueId first = node(gate.first).inputs[0];
            const bool swapped = node(norm.products[0]).outputs[0] != first;
            const NodeId product = norm.products[swapped ? 1 : 0];
            const ValueId other = node(norm.products[swapped ? 0 : 1]).inputs[1];
            pairs.emplace_back(add(norm, product, gate.first, gate.second, other), gate.first);
        } else {
            for (const NodeId product : norm.products)
                pairs.emplace_back(add(norm, product, product, {}, no_value), product);
        }
        double before = launch_seconds_ * (gated ? 2 : 1), now = 0;
        for (const NodeId product : norm.products) before += seconds_(graph_, node(product));
        for (const auto& pair : pairs) now += seconds_(graph_, node(pair.first));
        const bool pays = now < before;
        if (!pays)
            for (const auto& pair : pairs) node(pair.first).removed = true;
        else
            replace(norm, pairs);
        return pays;
    }

    void replace(const Norm& norm, const std::vector<std::pair<NodeId, NodeId>>& pairs) {
        std::vector<NodeId> gone = norm.products;
        gone.insert(gone.begin(), {norm.normalize, norm.scaled});
        for (const auto& [made, made_by] : pairs) {
            Node& joined = node(made);
            joined.name = node(made_by).name;
            joined.outputs = node(made_by).outputs;
            joined.fused = node(made_by).fused;
            graph_.value(joined.outputs[0]).producer = made;
            if (std::find(gone.begin(), gone.end(), made_by) == gone.end()) gone.push_back(made_by);
        }
        // Reports name each of those that are gone once.
        std::vector<std::string>& fused = node(pairs[0].first).fused;
        for (const NodeId id : gone) {
            const bool named = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
                return node(pair.first).name == node(id).name;
            });
            if (!named && id != norm.normalize) fused.push_back(node(id).name);
            node(id).removed = true;
        }
    }

    Graph& graph_;
    double launch_seconds_;
    const std::function<double(const Graph&, const Node&)>& seconds_;
    std::vector<std::vector<NodeId>> readers_;  ///< by ValueId
    std::set<ValueId> seen_;                    ///< outside of the graph
};

}  // namespace

void join_norms(Graph& graph, const Traits& device,
                const std::function<double(const Graph&, const Node&)>& seconds) {
    if (graph.training || !graph.gradients.empty()) return;
    NormJoiner(graph, device.launch_us * 1e-6, seconds).run();
}

}  // namespace dlprim
