// SPDX-License-Identifier: MIT
// label_inputs(): follows labels from operators back to the network's inputs.
#include "api/label_inputs.hpp"

#include "base/number_types.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

namespace dlprim {

namespace {

/// The number of non-negative values that an integer type can represent.
std::int64_t count_of(DType dtype) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const auto count = [](auto zero) -> std::int64_t {
        using T = decltype(zero);
        if constexpr (std::is_integral_v<T> && sizeof(T) < 8)
            return std::int64_t{std::numeric_limits<T>::max()} + 1;
        else
            return most;
    };
    return with_number_type(dtype, count, [] { return most; });
}

/// Whether the node does not change class numbers: it changes only the shape, or casts integers. A
/// cast limits `classes` to what its result type can represent.
bool keeps_labels(const Graph& graph, const Node& node, std::int64_t& classes) {
    if (node.op->is_view()) return true;
    if (node.op->type() != "Cast" || !is_integer(graph.spec(node.inputs[0]).dtype) ||
        !is_integer(graph.spec(node.outputs[0]).dtype))
        return false;
    classes = std::min(classes, count_of(graph.spec(node.outputs[0]).dtype));
    return true;
}

/// The label that does not count for a loss that has the option.
std::optional<std::int64_t> ignored_label(const Node& node) {
    constexpr const char* option = "ignore_index";
    if (!node.attrs.has(option)) return std::nullopt;
    const std::int64_t label = node.attrs.integer(option);
    if (label == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    return label;
}

}  // namespace

std::map<std::string, LabelInput> label_inputs(const Graph& graph) {
    std::map<std::string, LabelInput> classes;
    for (const Node& node : graph.nodes) {
        std::vector<TensorSpec> specs;
        for (ValueId id : node.inputs) specs.push_back(graph.spec(id));
        auto [input, count] = node.op->label_input(node.attrs, specs);
        if (input < 0) continue;
        ValueId value = node.inputs.at(static_cast<std::size_t>(input));
        while (graph.value(value).producer >= 0) {
            const Node& producer =
                graph.nodes[static_cast<std::size_t>(graph.value(value).producer)];
            if (!keeps_labels(graph, producer, count)) break;
            value = producer.inputs[0];
        }
        const Value& label = graph.value(value);
        if (label.role != Role::input) continue;
        const std::optional<std::int64_t> ignored = ignored_label(node);
        LabelInput& known = classes.emplace(label.name, LabelInput{count, ignored}).first->second;
        known.classes = std::min(known.classes, count);
        if (known.ignored != ignored) known.ignored.reset();
    }
    return classes;
}

}  // namespace dlprim
