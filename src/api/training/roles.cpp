// SPDX-License-Identifier: MIT
// roles_of().
#include "api/training/roles.hpp"

#include "api/net_core.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace dlprim {

namespace {

/// Whether a node with parameters computes with the input, directly or not: then it is an example
/// and no target.
bool meets_parameters(const Graph& graph, const std::string& input) {
    std::set<ValueId> reached{graph.find(input)};
    for (const Node& node : graph.nodes) {  // in an order in which they can run
        const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId id) { return reached.count(id) > 0; });
        if (!reads) continue;
        for (const ValueId id : node.inputs)
            if (id != no_value && graph.value(id).role == Role::parameter) return true;
        reached.insert(node.outputs.begin(), node.outputs.end());
    }
    return false;
}

void find_inputs(Net& net, Roles& roles) {
    const std::vector<std::string> names = net.input_names();
    constexpr const char* needs =
        "training needs a network of two inputs: examples, and labels or numbers that a loss reads";
    require(names.size() == 2, needs);
    for (const std::string& name : names)
        (net.label_classes(name) > 0 ? roles.labels : roles.images) = name;
    if (!roles.labels.empty()) {
        require(!roles.images.empty(), needs);
        return;
    }
    const Graph& graph = core_of(net).base_graph();
    roles.images.clear();
    for (const std::string& name : names)
        (meets_parameters(graph, name) ? roles.images : roles.labels) = name;
    require(!roles.images.empty() && !roles.labels.empty(), needs, "; of '", names[0], "' and '",
            names[1], "' ", roles.labels.empty() ? "both meet" : "none meets",
            " operators with parameters");
}

}  // namespace

Roles roles_of(Net& net) {
    Roles roles;
    find_inputs(net, roles);
    const std::vector<std::string> losses = net.loss_names();
    require(!losses.empty(),
            "the network has no loss: name an output 'loss...', or give one a loss_weight");
    roles.loss = losses.front();
    for (const std::string& name : net.output_names())
        if (std::find(losses.begin(), losses.end(), name) == losses.end() && roles.scores.empty())
            roles.scores = name;
    return roles;
}

}  // namespace dlprim
