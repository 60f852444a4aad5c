// SPDX-License-Identifier: MIT
// cut_net.
#include "api/placement/cut.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Which values have a gradient: those that depend on something whose gradient is wanted, and on
/// which a loss depends.
class GradientFlow {
  public:
    GradientFlow(const Graph& graph, const CutOptions& options)
        : graph_(graph), depends_(graph.values.size()), reaches_(graph.values.size()) {
        if (!options.gradients) return;
        for (std::size_t i = 0; i < graph.values.size(); ++i) {
            const Value& value = graph.values[i];
            depends_[i] = value.role == Role::parameter
                              ? value.trainable
                              : value.role == Role::input && options.input_gradients &&
                                    is_float(value.spec.dtype);
        }
        for (const Node& node : graph.nodes) {
            const bool any = has_any(node.inputs, depends_);
            for (const ValueId id : node.outputs) depends_[at(id)] = any && floats(id);
        }
        for (const auto& [loss, weight] : graph.losses) reaches_[at(loss)] = 1;
        for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
            if (has_any(node->outputs, reaches_))
                for (const ValueId id : node->inputs)
                    if (floats(id)) reaches_[at(id)] = 1;
    }

    bool depends(ValueId id) const { return depends_[at(id)] != 0; }
    /// Whether gradients flow through the node to those of its inputs that have one.
    bool passes(const Node& node) const { return has_any(node.outputs, reaches_); }

  private:
    static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
    bool floats(ValueId id) const { return is_float(graph_.spec(id).dtype); }
    static bool has_any(const std::vector<ValueId>& ids, const std::vector<char>& marks) {
        return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return marks[at(id)] != 0; });
    }

    const Graph& graph_;
    std::vector<char> depends_, reaches_;
};

class Cutter {
  public:
    Cutter(const NetDescription& description, const Graph& graph, const CutOptions& options)
        : description_(description), graph_(graph), options_(options), flow_(graph, options) {
        for (const NetDescription::Op& op : description.operators) operators_[op.name] = &op;
    }

    CutNet run() {
        require(!graph_.nodes.empty(),
                "a network without operators has nothing to place on "
                "devices");
        for (const Node& node : graph_.nodes) take_operator(node);
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            find_values(graph_.nodes[i], part_of_[i]);
        add_unread_inputs();
        add_outputs();
        for (auto& [value, crossing] : crossings_) add_crossing(std::move(crossing));
        for (CutPart& part : cut_.parts) complete(part);
        return std::move(cut_);
    }

  private:
    CutPart& part(int index) { return cut_.parts[static_cast<std::size_t>(index)]; }

    /// Adds the operator to the last part, or begins another one.
    void take_operator(const Node& node) {
        const std::size_t device = options_.devices.at(node.name);
        if (cut_.parts.empty() || cut_.parts.back().device != device) {
            cut_.parts.emplace_back().device = device;
            cut_.parts.back().description.source = description_.source;
        }
        NetDescription::Op op = *operators_.at(node.name);
        op.device.clear();
        cut_.parts.back().description.operators.push_back(std::move(op));
        part_of_.push_back(static_cast<int>(cut_.parts.size()) - 1);
    }

    void find_values(const Node& node, int reader) {
        for (const ValueId id : node.inputs) {
            const Value& value = graph_.value(id);
            if (value.role == Role::parameter)
                take_param(value, node, reader);
            else
                read_value(id, node, reader);
        }
    }

    void take_param(const Value& param, const Node& node, int owner) {
        const auto [found, is_new] = cut_.param_parts.emplace(param.name, owner);
        require(is_new || found->second == owner, "parameter '", param.name, "' of operator '",
                node.name,
                "' belongs to an operator of another part of the network, too: a "
                "placed network needs operators that share parameters beside each other, on one "
                "device");
        part(owner).trains = part(owner).trains || param.trainable;
    }

    void read_value(ValueId id, const Node& node, int reader) {
        const Value& value = graph_.value(id);
        const int maker = value.role == Role::input
                              ? Crossing::caller
                              : part_of_[static_cast<std::size_t>(value.producer)];
        if (maker == reader) return;
        Crossing& crossing = crossing_of(id, maker);
        if (crossing.readers.empty() || crossing.readers.back() != reader)
            crossing.readers.push_back(reader);
        if (!flow_.depends(id) || !flow_.passes(node)) return;
        std::vector<int>& differentiable = crossing.differentiable;
        if (differentiable.empty() || differentiable.back() != reader)
            differentiable.push_back(reader);
    }

    Crossing& crossing_of(ValueId id, int maker) {
        const Value& value = graph_.value(id);
        Crossing& crossing = crossings_[id];
        crossing.name = value.name;
        crossing.spec = value.spec;
        crossing.maker = maker;
        return crossing;
    }

    /// Inputs that no operator reads are fed to the first part.
    void add_unread_inputs() {
        for (const ValueId id : graph_.inputs) {
            Crossing& crossing = crossing_of(id, Crossing::caller);
            if (crossing.readers.empty()) crossing.readers.push_back(0);
            // The gradient of an input on which no loss depends is zero.
            if (flow_.depends(id) && crossing.differentiable.empty())
                crossing.differentiable.push_back(crossing.readers.front());
        }
    }

    void add_outputs() {
        for (const auto& [id, name] : graph_.outputs) {
            const NodeId producer = graph_.value(id).producer;
            const int maker = producer < 0 ? crossings_.at(id).readers.front()
                                           : part_of_[static_cast<std::size_t>(producer)];
            cut_.output_parts[name] = maker;
            const auto loss = graph_.losses.find(id);
            NetDescription::Output output{name, std::nullopt, loss == graph_.losses.end()};
            if (!output.plain) output.loss_weight = loss->second;
            part(maker).description.outputs.push_back(std::move(output));
        }
    }

    void add_crossing(Crossing crossing) {
        for (const int reader : crossing.readers)
            part(reader).description.inputs.push_back(
                {crossing.name, crossing.spec.shape, crossing.spec.dtype});
        for (const int reader : crossing.differentiable) {
            PartBorder& border = part(reader).border;
            border.wanted.insert(crossing.name);
            if (reader != crossing.differentiable.back()) border.continued.insert(crossing.name);
        }
        if (crossing.maker != Crossing::caller) {
            CutPart& maker = part(crossing.maker);
            std::vector<NetDescription::Output>& outputs = maker.description.outputs;
            const auto same = [&](const auto& output) { return output.name == crossing.name; };
            if (std::none_of(outputs.begin(), outputs.end(), same))
                outputs.push_back({crossing.name, std::nullopt, true});
            if (!crossing.differentiable.empty()) maker.border.seeded.insert(crossing.name);
        }
        cut_.crossings.push_back(std::move(crossing));
    }

    void complete(CutPart& part) const {
        part.backward = options_.gradients && (part.trains || !part.border.wanted.empty());
        if (!part.description.outputs.empty()) return;
        // A net must have an output, and nobody needs what this part makes.
        part.runs = part.backward;
        part.description.outputs.push_back(
            {part.description.operators.back().outputs.front(), std::nullopt, true});
    }

    const NetDescription& description_;
    const Graph& graph_;
    const CutOptions& options_;
    const GradientFlow flow_;
    std::map<std::string, const NetDescription::Op*> operators_;
    std::vector<int> part_of_;  ///< by node of the graph
    std::map<ValueId, Crossing> crossings_;
    CutNet cut_;
};

}  // namespace

std::string operator_of(const CutPart& part, std::string node) {
    const std::vector<NetDescription::Op>& operators = part.description.operators;
    while (std::none_of(operators.begin(), operators.end(),
                        [&](const auto& op) { return op.name == node; })) {
        const std::size_t slash = node.rfind('/');
        if (slash == std::string::npos) return {};
        node.resize(slash);
    }
    return node;
}

CutNet cut_net(const NetDescription& description, const Graph& whole, const CutOptions& options) {
    return Cutter(description, whole, options).run();
}

}  // namespace dlprim
