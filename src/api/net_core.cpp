// SPDX-License-Identifier: MIT
// NetCore: what the description says of inputs and parameters.
#include "api/net_core.hpp"

#include "api/net_impl.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

NetCore& core_of(const Net& net) {
    const auto& core = Access::shared_impl(net);
    require(core != nullptr,
            "this Net was moved from and has no network: use the one that it was moved to");
    return *core;
}

void NetCore::set_graph(Graph graph) {
    base_ = std::move(graph);
    params_.clear();
    int order = 0;
    for (const Value& value : base_.values)
        if (value.role == Role::parameter) params_[value.name] = {value, order++};
}

Graph NetCore::own_graph() const {
    // A net without a network has none, and the error of building it says so.
    return base_.outputs.empty() ? build_graph(description_, options_) : base_;
}

NetOptions NetCore::take_shapes(std::int64_t batch, const std::map<std::string, Shape>& shapes) {
    NetOptions before = options_;
    for (const auto& [name, shape] : shapes) options_.input_shapes[name] = shape;
    if (batch > 0) {
        options_.batch = batch;
        for (auto& [name, shape] : options_.input_shapes)
            if (shape.rank() > 0) shape = shape.with(0, batch);
    }
    return before;
}

void NetCore::check_params_stay(const Graph& graph) const {
    std::size_t count = 0;
    for (const Value& value : graph.values) {
        if (value.role != Role::parameter) continue;
        ++count;
        const TensorSpec& spec = param_spec(value.name);
        require(value.spec == spec, "with inputs of these shapes parameter '", value.name,
                "' would have shape ", value.spec.shape.str(), " in place of ", spec.shape.str(),
                "; make another net for them, with the option input_shapes");
    }
    require(count == params_.size(), "with inputs of these shapes the network would have ", count,
            " parameters in place of ", params_.size(),
            "; make another net for them, with the option input_shapes");
}

std::vector<std::string> NetCore::param_names() const {
    std::vector<std::string> names(params_.size());
    for (const auto& [name, param] : params_) names[static_cast<std::size_t>(param.order)] = name;
    return names;
}

const TensorSpec& NetCore::input_spec(const std::string& name) const {
    std::vector<std::string> names;
    for (ValueId id : base_.inputs) {
        if (base_.value(id).name == name) return base_.spec(id);
        names.push_back(base_.value(id).name);
    }
    fail(ErrorKind::not_found, "the network has no input '", name, "'", did_you_mean(name, names));
}

const TensorSpec& NetCore::param_spec(const std::string& name) const {
    const auto found = params_.find(name);
    if (found == params_.end())
        fail(ErrorKind::not_found, "the network has no parameter '", name, "'",
             did_you_mean(name, param_names()));
    return found->second.value.spec;
}

bool NetCore::is_loss(const std::string& output) const {
    return std::any_of(base_.outputs.begin(), base_.outputs.end(), [&](const auto& each) {
        return each.second == output && base_.losses.count(each.first) > 0;
    });
}

std::optional<LabelInput> NetCore::label_input(const std::string& name) const {
    const std::map<std::string, LabelInput> known = label_inputs(own_graph());
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace dlprim
