// SPDX-License-Identifier: MIT
// index_inputs(): follows indices from operators back to the network's inputs.
#include "api/index_inputs.hpp"

#include "base/text.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// The largest dimension whose indices int32 holds.
constexpr std::int64_t int_size = std::int64_t{1} << 31;

/// Whether indices that are in range stay what they are: the node changes only the shape, and of
/// tuples not the last dimension, or makes integers of a type that holds them.
bool keeps_indices(const Graph& graph, const Node& node, const IndexInput& indices) {
    const TensorSpec &from = graph.spec(node.inputs[0]), &to = graph.spec(node.outputs[0]);
    const Ints& sizes = indices.sizes;
    const bool tuples = sizes.size() > 1 && !indices.cumulative;
    if (node.op->type() == "Cast")
        return is_integer(from.dtype) && (to.dtype == DType::i64 || to.dtype == DType::i32) &&
               (to.dtype == DType::i64 ||
                *std::max_element(sizes.begin(), sizes.end()) <= int_size);
    return node.op->is_view() && (!tuples || (from.shape.rank() > 0 && to.shape.rank() > 0 &&
                                              from.shape[-1] == to.shape[-1]));
}

const Value& source_of_indices(const Graph& graph, ValueId value, const IndexInput& indices) {
    while (graph.value(value).producer >= 0) {
        const Node& producer = graph.nodes[static_cast<std::size_t>(graph.value(value).producer)];
        if (producer.inputs.empty() || !keeps_indices(graph, producer, indices)) break;
        value = producer.inputs[0];
    }
    return graph.value(value);
}

}  // namespace

std::map<std::string, std::vector<IndexReader>> index_inputs(const Graph& graph) {
    std::map<std::string, std::vector<IndexReader>> readers;
    for (const Node& node : graph.nodes) {
        const auto* indexed = dynamic_cast<const IndexedOperator*>(node.op);
        if (indexed == nullptr) continue;
        std::vector<TensorSpec> specs;
        for (const ValueId id : node.inputs) specs.push_back(graph.spec(id));
        const IndexInput indices = indexed->index_input(node.attrs, specs);
        if (indices.input < 0) continue;
        const ValueId read = node.inputs.at(static_cast<std::size_t>(indices.input));
        const Value& source = source_of_indices(graph, read, indices);
        if (source.role == Role::input)
            readers[source.name].push_back({std::string(node.type()), node.name, indices});
    }
    return readers;
}

namespace {

/// What is wrong with one of the indices, or with the lengths, or nothing.
std::string refused(const IndexInput& as, std::span<const std::int64_t> indices) {
    if (as.cumulative) {
        const std::size_t row = indices.size() / as.sizes.size();
        std::string text;
        for (std::size_t r = 0; r < as.sizes.size() && text.empty(); ++r)
            text = refused_lengths(indices.subspan(r * row, row),
                                   static_cast<std::int64_t>(r * row), as.sizes[r]);
        return text;
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::int64_t size = as.sizes[i % as.sizes.size()];
        if (indices[i] < (as.from_end ? -size : 0) || indices[i] >= size)
            return outside_text(indices[i], static_cast<std::int64_t>(i), size, as.from_end);
    }
    return {};
}

}  // namespace

void check_indices(const std::string& input, const std::vector<IndexReader>& readers, DType dtype,
                   const void* data, std::int64_t count) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    convert(data, dtype, indices.data(), DType::i64, indices.size());
    for (const IndexReader& reader : readers) {
        const std::string text = refused(reader.as, indices);
        require(text.empty(), '[', reader.type, " '", reader.name, "'] input '", input,
                "': ", text);
    }
}

}  // namespace dlprim
