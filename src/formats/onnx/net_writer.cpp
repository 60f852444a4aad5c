// SPDX-License-Identifier: MIT
// Names in a network, and what known values become; see net_writer.hpp.
#include "formats/onnx/net_writer.hpp"

#include "base/text.hpp"
#include "formats/onnx/patterns/patterns.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <unordered_map>

namespace dlprim::onnx {

namespace {

/// What is larger lies in the weights file, not in the network's JSON.
constexpr std::int64_t largest_constant = 4096;

bool is_literal(const HostTensor& value) {
    return value.shape.numel() <= largest_constant;
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

class NetWriter {
  public:
    NetWriter(const Builder& builder, std::vector<BuiltOperator> operators, const NamedRefs& inputs)
        : builder_(builder), operators_(std::move(operators)) {
        for (const auto& [name, value] : inputs) {
            net_.description.inputs.push_back({name, value->spec.shape, value->spec.dtype});
            tensor_names_.insert(name);
            tensors_[value] = name;
        }
        for (const BuiltOperator& op : operators_) operator_names_.insert(op.name);
        find_producers();
    }

    ImportedNet write(const NamedRefs& outputs) {
        std::set<Ref> taken;
        std::vector<Ref> wanted;
        for (const auto& [name, value] : outputs) {
            wanted.push_back(output(name, value, taken));
            tensors_[wanted.back()] = name;
            tensor_names_.insert(name);
            net_.description.outputs.push_back({name, std::nullopt});
        }
        merge_patterns(operators_, taken, builder_, made_);
        find_producers();
        const std::vector<bool> is_needed = needed(wanted);
        for (std::size_t i = 0; i < operators_.size(); ++i)
            if (is_needed[i]) write(operators_[i]);
        return std::move(net_);
    }

  private:
    void find_producers() {
        for (std::size_t i = 0; i < operators_.size(); ++i)
            for (Ref value : operators_[i].outputs)
                if (!value->known) producers_[value] = i;
    }

    /// The value that becomes this output. One that is an input, a constant or another output too
    /// is a tensor of its own.
    Ref output(const std::string& name, Ref value, std::set<Ref>& taken) {
        if (producers_.count(value) && taken.insert(value).second) return value;
        copies_.push_back({value->spec});
        const Ref copy = &copies_.back();
        producers_[copy] = operators_.size();
        const Attrs options{{"dims", Ints(value->spec.shape.to_vector())}};
        operators_.push_back({"Reshape", operator_names_.take(name), options, {value}, {}, {copy}});
        return copy;
    }

    std::vector<bool> needed(const std::vector<Ref>& outputs) const {
        std::vector<bool> result(operators_.size(), false);
        const auto want = [&](Ref value) {
            if (const auto found = producers_.find(value); found != producers_.end())
                result[found->second] = true;
        };
        for (Ref value : outputs) want(value);
        for (std::size_t i = operators_.size(); i-- > 0;) {
            if (!result[i]) continue;
            for (const auto* list : {&operators_[i].inputs, &operators_[i].params})
                for (Ref value : *list) want(value);
        }
        return result;
    }

    std::string parameter_name(Ref value) {
        if (const auto found = parameters_.find(value); found != parameters_.end())
            return found->second;
        const auto made = made_.names.find(value);
        const std::string given =
            made != made_.names.end() ? made->second : builder_.name_of(value);
        const std::string name = parameter_names_.take(parameter_text(given));
        net_.values[name] = value->known;
        return parameters_[value] = name;
    }

    /// The tensor's name in the description; of a known value an operator is added that makes it.
    std::string tensor_name(Ref value) {
        if (const auto found = tensors_.find(value); found != tensors_.end()) return found->second;
        const bool literal = !value->stored && is_literal(*value->known);
        NetDescription::Op op;
        op.type = literal ? "Constant" : "Parameter";
        const std::string given = builder_.name_of(value),
                          wanted = given.empty() ? "constant" : given;
        op.name = operator_names_.take(wanted);
        op.outputs = {tensor_names_.take(wanted)};
        if (literal) {
            op.options = constant_options(*value->known);
        } else {
            op.options = {{"shape", Ints(value->spec.shape.to_vector())},
                          {"dtype", std::string(dlprim::name_of(value->spec.dtype))},
                          {"is_trainable", value->stored && is_float(value->spec.dtype)}};
            op.params = {parameter_name(value)};
        }
        const std::string name = op.outputs[0];
        net_.description.operators.push_back(std::move(op));
        return tensors_[value] = name;
    }

    /// Takes its texts and options.
    void write(BuiltOperator& made) {
        NetDescription::Op op;
        op.type = std::move(made.type);
        op.name = std::move(made.name);
        op.options = std::move(made.options);
        for (Ref value : made.inputs) op.inputs.push_back(tensor_name(value));
        const bool all_known = std::all_of(made.params.begin(), made.params.end(),
                                           [](Ref value) { return value->known != nullptr; });
        for (Ref value : made.params) {
            if (all_known)
                op.params.push_back(parameter_name(value));
            else
                op.inputs.push_back(tensor_name(value));  // behind the operator's own inputs
        }
        for (std::size_t i = 0; i < made.outputs.size(); ++i) {
            const Ref value = made.outputs[i];
            if (!tensors_.count(value)) {
                const std::string given = builder_.name_of(value);
                tensors_[value] = tensor_names_.take(
                    !given.empty() ? given : cat(op.name, i == 0 ? "" : cat(":", i)));
            }
            op.outputs.push_back(tensors_[value]);
        }
        net_.description.operators.push_back(std::move(op));
    }

    const Builder& builder_;
    std::vector<BuiltOperator> operators_;
    std::deque<BuiltValue> copies_;
    MadeValues made_;
    std::unordered_map<Ref, std::size_t> producers_;
    Names operator_names_, tensor_names_, parameter_names_;
    /// What the description calls tensors and parameters.
    std::unordered_map<Ref, std::string> tensors_, parameters_;
    ImportedNet net_;
};

}  // namespace

ImportedNet write_net(const Builder& builder, std::vector<BuiltOperator> operators,
                      const NamedRefs& inputs, const NamedRefs& outputs) {
    return NetWriter(builder, std::move(operators), inputs).write(outputs);
}

}  // namespace dlprim::onnx
