// SPDX-License-Identifier: MIT
// What a page shows, as JSON.
#include "api/report/page.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dlprim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_rows = 4000;     ///< epochs of a run
constexpr std::size_t most_entries = 3000;  ///< tensors of a memory map
constexpr std::size_t most_operators = 3000;
constexpr std::size_t most_text = 300;  ///< characters of an operator's options

const char* kind_name(const MemoryMap::Entry& entry) {
    switch (entry.kind) {
        case MemoryMap::Entry::Kind::scratch:
            return entry.recomputed ? "recomputed" : "tensor";
        case MemoryMap::Entry::Kind::workspace:
            return "workspace";
        case MemoryMap::Entry::Kind::bound:
            return "bound";
        case MemoryMap::Entry::Kind::block:
            return "block";
    }
    return "";
}

Json tensor_json(const TensorDescription& tensor) {
    return {{"name", tensor.name},
            {"shape", tensor.shape.to_vector()},
            {"dtype", name_of(tensor.dtype)},
            {"producer", tensor.producer}};
}

Json tensors_json(const std::vector<TensorDescription>& tensors) {
    Json list = Json::array();
    for (const TensorDescription& tensor : tensors) list.push_back(tensor_json(tensor));
    return list;
}

Json operator_json(const OperatorDescription& op) {
    std::int64_t params = 0;
    for (const ParamDescription& param : op.params)
        if (!param.shared) params += param.shape.numel();
    std::string options(std::string_view(op.options).substr(0, most_text));
    if (op.options.size() > most_text) options += " ...";
    const Operator* declared = OperatorRegistry::instance().find(op.type);
    return {
        {"name", op.name},
        {"type", op.type},
        {"group", declared == nullptr ? std::string() : std::string(declared->schema().group())},
        {"options", std::move(options)},
        {"frozen", op.frozen},
        {"gflop", short_number(op.gflop)},
        {"params", params},
        {"inputs", tensors_json(op.inputs)},
        {"outputs", tensors_json(op.outputs)}};
}

}  // namespace

Json short_number(double value) {
    if (!std::isfinite(value)) return nullptr;
    const double shortened = leading_number(cat(value), value);
    if (shortened == std::floor(shortened) && std::abs(shortened) < 1e15)
        return static_cast<std::int64_t>(shortened);
    return shortened;
}

Json table_json(const std::string& title,
                const std::vector<std::pair<std::string, std::string>>& rows) {
    Json table = {{"title", title}, {"rows", Json::array()}};
    for (const auto& [key, value] : rows) table["rows"].push_back({key, value});
    return table;
}

Json to_json(const ReportRun& run) {
    Json rows = Json::array();
    // The last epoch always stays.
    const std::size_t step = (run.rows.size() + most_rows - 1) / most_rows;
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
        if ((run.rows.size() - 1 - i) % step != 0) continue;
        Json row = Json::array();
        for (const double value : run.rows[i]) row.push_back(short_number(value));
        rows.push_back(std::move(row));
    }
    return {{"name", run.name},
            {"columns", run.columns},
            {"rows", std::move(rows)},
            {"epochs", run.rows.size()},
            {"facts", table_json("", run.facts)["rows"]}};
}

Json to_json(const NodeReport& node) {
    return {{"name", node.name},
            {"type", node.type},
            {"engine", node.engine},
            {"part", node.part},
            {"fused", node.fused},
            {"ms", short_number(node.ms)},
            {"gflop", short_number(node.gflop)},
            {"gbytes", short_number(node.gbytes)},
            {"bound_ms", short_number(node.bound_ms)}};
}

void put_nodes(Json& data, const std::vector<NodeReport>& nodes, const Traits& device) {
    data["nodes"] = Json::array();
    for (const NodeReport& node : nodes) data["nodes"].push_back(to_json(node));
    data["peaks"] = {{"gflops", short_number(device.gflops)},
                     {"gbytes_per_s", short_number(device.gbytes_per_s)},
                     {"launch_us", short_number(device.launch_us)}};
}

Json to_json(const MemoryMap& map) {
    std::vector<const MemoryMap::Entry*> largest;
    for (const MemoryMap::Entry& entry : map.entries)
        if (entry.bytes > 0) largest.push_back(&entry);
    std::stable_sort(largest.begin(), largest.end(),
                     [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    const std::size_t left_out = largest.size() - std::min(largest.size(), most_entries);
    largest.resize(largest.size() - left_out);
    Json entries = Json::array(), steps = Json::array();
    for (const MemoryMap::Entry* entry : largest)
        entries.push_back({{"kind", kind_name(*entry)},
                           {"name", entry->name},
                           {"bytes", entry->bytes},
                           {"first", entry->first},
                           {"last", entry->last},
                           {"slab", entry->slab},
                           {"offset", entry->offset}});
    for (const MemoryMap::Step& step : map.steps)
        steps.push_back({{"name", step.name},
                         {"type", step.type},
                         {"phase", step.phase},
                         {"bytes", step.live_bytes}});
    return {{"entries", entries},
            {"left_out", left_out},
            {"steps", steps},
            {"slabs", map.slabs},
            {"peak", map.peak_bytes},
            {"setup_peak", map.setup_peak_bytes},
            {"persistent", map.persistent_bytes},
            {"limit", map.limit_bytes}};
}

Json to_json(const NetworkDescription& network) {
    Json operators = Json::array();
    for (const OperatorDescription& op : network.operators) {
        if (operators.size() == most_operators) break;
        operators.push_back(operator_json(op));
    }
    Json losses = Json::array();
    for (const auto& [name, weight] : network.losses) losses.push_back(name);
    return {{"inputs", tensors_json(network.inputs)},
            {"operators", operators},
            {"left_out", network.operators.size() - operators.size()},
            {"outputs", tensors_json(network.outputs)},
            {"losses", losses},
            {"params", network.params},
            {"trainable", network.trainable_params}};
}

}  // namespace dlprim
