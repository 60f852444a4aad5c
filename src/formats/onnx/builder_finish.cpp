// SPDX-License-Identifier: MIT
// Builder::finish(): names, and what known values become.
#include "base/text.hpp"
#include "formats/onnx/builder.hpp"
#include "formats/onnx/patterns.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

namespace {

/// What is larger lies in the weights file, not in the network's JSON.
constexpr std::int64_t largest_constant = 4096;

bool is_literal(const HostTensor& value) {
    if (value.shape.numel() > largest_constant) return false;
    if (!is_float(value.dtype)) return true;
    const std::vector<double> numbers = to_numbers(value);  // JSON has no infinities
    return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

/// A parameter's name in weights files, where a slash would make a group, which no parameter can
/// be as well.
std::string parameter_text(std::string name) {
    name.erase(0, name.find_first_not_of('/'));
    std::replace(name.begin(), name.end(), '/', '.');
    return name.empty() ? "constant" : name;
}

/// The option that holds a Constant's values: one number where all are the same.
template <typename Number>
std::vector<Number> shortest(std::vector<Number> values) {
    const bool same =
        std::all_of(values.begin(), values.end(), [&](Number v) { return v == values.front(); });
    if (same) values.resize(1);
    return values;
}

Attrs constant_options(const HostTensor& value) {
    Attrs options{{"shape", Ints(value.shape.to_vector())},
                  {"dtype", std::string(name_of(value.dtype))}};
    if (is_float(value.dtype))
        options.set("values", shortest(to_numbers(value)));
    else
        options.set("integers", shortest(to_integers(value)));
    return options;
}

}  // namespace

std::vector<bool> Builder::needed(const std::vector<std::pair<std::string, Ref>>& outputs) const {
    std::vector<bool> result(made_.size(), false);
    const auto want = [&](Ref value) {
        if (value->producer >= 0) result[static_cast<std::size_t>(value->producer)] = true;
    };
    for (const auto& output : outputs) want(output.second);
    for (std::size_t i = made_.size(); i-- > 0;) {
        if (!result[i]) continue;
        for (Ref value : made_[i].inputs) want(value);
        for (Ref value : made_[i].params) want(value);
    }
    return result;
}

std::string Builder::parameter_name(Ref value, ImportedNet& net) {
    if (const auto found = parameters_.find(value); found != parameters_.end())
        return found->second;
    std::string name = unique(parameter_text(name_of(value)), parameter_names_);
    parameter_names_.insert(name);
    net.values[name] = value->known;
    return parameters_[value] = std::move(name);
}

std::string Builder::tensor_name(Ref value, ImportedNet& net) {
    if (const auto found = tensors_.find(value); found != tensors_.end()) return found->second;
    const bool literal = !value->stored && is_literal(*value->known);
    NetDescription::Op op;
    op.type = literal ? "Constant" : "Parameter";
    const std::string given = name_of(value), wanted = given.empty() ? "constant" : given;
    op.name = unique(wanted, operator_names_);
    operator_names_.insert(op.name);
    op.outputs = {unique(wanted, tensor_names_)};
    tensor_names_.insert(op.outputs[0]);
    if (literal) {
        op.options = constant_options(*value->known);
    } else {
        op.options = {{"shape", Ints(value->spec.shape.to_vector())},
                      {"dtype", std::string(dlprim::name_of(value->spec.dtype))},
                      {"is_trainable", value->stored && is_float(value->spec.dtype)}};
        op.params = {parameter_name(value, net)};
    }
    const std::string name = op.outputs[0];
    net.description.operators.push_back(std::move(op));
    return tensors_[value] = name;
}

void Builder::write(const BuiltOperator& made, ImportedNet& net) {
    NetDescription::Op op;
    op.type = made.type;
    op.name = made.name;
    op.options = made.options;
    for (Ref value : made.inputs) op.inputs.push_back(tensor_name(value, net));
    const bool all_known = std::all_of(made.params.begin(), made.params.end(),
                                       [](Ref value) { return value->known != nullptr; });
    for (Ref value : made.params) {
        if (all_known)
            op.params.push_back(parameter_name(value, net));
        else
            op.inputs.push_back(tensor_name(value, net));  // behind the operator's own inputs
    }
    for (std::size_t i = 0; i < made.outputs.size(); ++i) {
        const Ref value = made.outputs[i];
        if (!tensors_.count(value)) {
            const std::string given = name_of(value);
            const std::string wanted =
                !given.empty() ? given : cat(made.name, i == 0 ? "" : cat(":", i));
            tensors_[value] = unique(wanted, tensor_names_);
            tensor_names_.insert(tensors_[value]);
        }
        op.outputs.push_back(tensors_[value]);
    }
    net.description.operators.push_back(std::move(op));
}

Ref Builder::output(const std::string& name, Ref value, std::set<Ref>& taken) {
    if (value->producer >= 0 && taken.insert(value).second) return value;
    // An output that is an input, a constant or another output too is a tensor of its own.
    BuiltValue& copy = make(value->spec, name);
    copy.producer = static_cast<int>(made_.size());
    const Attrs options{{"dims", Ints(value->spec.shape.to_vector())}};
    BuiltOperator view{"Reshape", unique(name, operator_names_), options, {value}, {}, {&copy}};
    operator_names_.insert(view.name);
    made_.push_back(std::move(view));
    return &copy;
}

ImportedNet Builder::finish(const std::vector<std::pair<std::string, Ref>>& outputs) {
    std::vector<std::pair<std::string, Ref>> wanted;
    std::set<Ref> taken;
    for (const auto& [name, value] : outputs) {
        wanted.emplace_back(name, output(name, value, taken));
        tensors_[wanted.back().second] = name;
        tensor_names_.insert(name);
    }
    merge_patterns(made_, taken);
    ImportedNet net;
    net.description.inputs = inputs_;
    const std::vector<bool> is_needed = needed(wanted);
    for (std::size_t i = 0; i < made_.size(); ++i)
        if (is_needed[i]) write(made_[i], net);
    for (const auto& output : wanted)
        net.description.outputs.push_back({output.first, std::nullopt});
    return net;
}

}  // namespace dlprim::onnx
