// SPDX-License-Identifier: MIT
// build_graph: turns a network description into a graph with parameters and shapes.
#include "graph/description.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/gradients_of.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dlprim {

namespace {

using Op = NetDescription::Op;

std::string where(const Op& op) {
    return cat("[", op.type, " '", op.name, "'] ");
}

/// Sorts operators so that every tensor is made before it is used. Operators that are in order
/// already keep their order. That matters for operators that work in place: each makes a new
/// version of its tensor, and only the order says which version a reader means.
std::vector<const Op*> ordered(const NetDescription& description) {
    std::unordered_set<std::string_view> known;
    for (const auto& input : description.inputs) known.insert(input.name);
    std::vector<const Op*> result, waiting;
    for (const Op& op : description.operators) waiting.push_back(&op);
    while (!waiting.empty()) {
        std::vector<const Op*> later;
        for (const Op* op : waiting) {
            const bool ready =
                std::all_of(op->inputs.begin(), op->inputs.end(),
                            [&](const std::string& name) { return known.count(name) > 0; });
            if (!ready) {
                later.push_back(op);
                continue;
            }
            known.insert(op->outputs.begin(), op->outputs.end());
            result.push_back(op);
        }
        if (later.size() == waiting.size()) {
            std::set<std::string> made_later;
            for (const Op* op : later) made_later.insert(op->outputs.begin(), op->outputs.end());
            for (const Op* op : later) {
                for (const std::string& name : op->inputs) {
                    if (known.count(name) || made_later.count(name)) continue;
                    std::vector<std::string> candidates(known.begin(), known.end());
                    std::sort(candidates.begin(), candidates.end());
                    candidates.insert(candidates.end(), made_later.begin(), made_later.end());
                    fail(ErrorKind::invalid_argument, where(*op), "input '", name,
                         "' is neither a network input nor any operator's output",
                         did_you_mean(name, candidates));
                }
            }
            std::vector<std::string> names;
            for (const Op* op : later)
                if (names.size() < 8) names.push_back("'" + op->name + "'");
            fail(ErrorKind::invalid_argument, "the network has a cycle: operators ",
                 join(names, ", "), " wait for each other's outputs");
        }
        waiting = std::move(later);
    }
    return result;
}

class Builder {
  public:
    Builder(const NetDescription& description, const std::map<std::string, Shape>& shapes,
            std::int64_t batch, bool training, Precision precision)
        : description_(description) {
        graph_.training = training;
        graph_.precision = precision;
        add_inputs(shapes, batch);
    }

    Graph build() {
        std::set<std::string> names;
        for (const Op& op : description_.operators) {
            if (op.name.empty())
                fail(ErrorKind::invalid_argument, where(op), "an operator needs a name");
            if (!names.insert(op.name).second)
                fail(ErrorKind::invalid_argument, where(op), "two operators have the name '",
                     op.name, "'");
        }
        for (const Op* op : ordered(description_)) add_operator(*op);
        add_outputs();
        return std::move(graph_);
    }

  private:
    void add_inputs(const std::map<std::string, Shape>& shapes, std::int64_t batch) {
        std::vector<std::string> names;
        for (const auto& input : description_.inputs) {
            require(!tensors_.count(input.name), "two inputs have the name '", input.name, "'");
            Value value;
            value.name = input.name;
            value.role = Role::input;
            Shape shape = input.shape;
            if (auto found = shapes.find(input.name); found != shapes.end())
                shape = found->second;
            else if (batch > 0 && shape.rank() > 0)
                shape = shape.with(0, batch);
            if (shape.empty())
                fail(ErrorKind::invalid_argument, "input '", input.name, "' has shape ",
                     shape.str(), "; a declared dimension is at least 1");
            value.spec = {shape, input.dtype};
            const ValueId id = graph_.add_value(std::move(value));
            graph_.inputs.push_back(id);
            tensors_[input.name] = id;
            names.push_back(input.name);
        }
        for (const auto& [name, shape] : shapes)
            if (std::find(names.begin(), names.end(), name) == names.end())
                fail(ErrorKind::invalid_argument, "the network has no input '", name, "'",
                     did_you_mean(name, names));
    }

    void add_operator(const Op& op) {
        const Operator* type = nullptr;
        try {
            type = &OperatorRegistry::instance().get(op.type);
            const auto& open = description_.internal_types;
            require(!type->internal() || std::find(open.begin(), open.end(), op.type) != open.end(),
                    "operator type '", op.type, "' is internal to the library");
        } catch (const Error& error) {
            throw Error(error.kind(), where(op) + error.what());
        }
        if (!op.gradients.empty()) return add_gradients_of(op, *type);
        const auto of_op = [&] { return where(op); };
        const Attrs attrs = OperatorRegistry::instance().complete(op.type, op.options, of_op).attrs;
        std::vector<ValueId> inputs;
        std::vector<TensorSpec> specs;
        for (const std::string& name : op.inputs) {
            inputs.push_back(tensors_.at(name));
            if (static_cast<int>(inputs.size()) <= type->max_inputs())
                specs.push_back(graph_.spec(inputs.back()));
        }
        check_input_count(op, *type);
        std::vector<ParamSpec> params;
        int made = 0;
        try {
            made = type->outputs(attrs);
            params = type->params(attrs, specs);
        } catch (const Error& error) {
            throw Error(error.kind(), where(op) + error.what());
        }
        if (inputs.size() > specs.size())
            check_given_params(op, static_cast<std::size_t>(type->max_inputs()), inputs, params);
        else
            add_params(op, params, inputs);

        if (static_cast<int>(op.outputs.size()) > made || op.outputs.empty())
            fail(ErrorKind::invalid_argument, where(op), "makes ", made,
                 made == 1 ? " output, " : " outputs, ", op.outputs.size(), " are named");
        const std::vector<ValueId> outputs = graph_.add(op.type, op.name, inputs, op.options);
        Node& node = graph_.nodes.back();
        node.engine = op.engine;
        node.precision = op.precision.value_or(graph_.precision);
        node.frozen = op.frozen;
        node.recompute = op.recompute;
        for (std::size_t i = 0; i < op.outputs.size(); ++i) {
            const std::string& name = op.outputs[i];
            const bool in_place =
                std::find(op.inputs.begin(), op.inputs.end(), name) != op.inputs.end();
            if (!in_place && tensors_.count(name))
                fail(ErrorKind::invalid_argument, where(op), "output '", name,
                     "' is already made by another operator or is a network input");
            Value& value = graph_.value(outputs[i]);
            value.name = name;
            tensors_[name] = outputs[i];
        }
    }

    /// Of an operator whose `inputs` are its own, its parameters and the gradient of its result.
    void add_gradients_of(const Op& op, const Operator& type) {
        require(!description_.internal_types.empty(), where(op),
                "makes gradients, which only functions have");
        require(op.inputs.size() >= 2 && op.params.empty(), where(op),
                "takes its inputs, its parameters and the gradient of its result");
        require(op.outputs.size() == op.gradients.size(), where(op), "makes ", op.gradients.size(),
                " gradients, ", op.outputs.size(), " outputs are named");
        std::vector<ValueId> inputs;
        std::vector<TensorSpec> specs;
        for (const std::string& name : op.inputs) inputs.push_back(tensors_.at(name));
        const ValueId dy = inputs.back();
        inputs.pop_back();
        const auto most = static_cast<std::size_t>(type.max_inputs());
        for (std::size_t i = 0; i < std::min(most, inputs.size()); ++i)
            specs.push_back(graph_.spec(inputs[i]));
        require(static_cast<int>(specs.size()) >= type.min_inputs(), where(op), "takes ",
                type.min_inputs(), " inputs and the gradient of its result, got ",
                op.inputs.size());
        const Precision precision =
            std::exchange(graph_.precision, op.precision.value_or(graph_.precision));
        try {
            const Attrs attrs =
                OperatorRegistry::instance().complete(op.type, op.options, std::string()).attrs;
            check_given_params(op, specs.size(), inputs, type.params(attrs, specs));
            const std::vector<ValueId> made =
                add_gradients(graph_, op.type, op.name, op.options, inputs, dy, op.gradients);
            for (std::size_t i = 0; i < made.size(); ++i)
                require(tensors_.emplace(op.outputs[i], made[i]).second, where(op), "output '",
                        op.outputs[i], "' is already made by another operator or is an input");
        } catch (const Error& error) {
            if (std::string_view(error.what()).starts_with('[')) throw;
            throw Error(error.kind(), where(op) + error.what());
        }
        graph_.precision = precision;
    }

    static void check_input_count(const Op& op, const Operator& type) {
        const int count = static_cast<int>(op.inputs.size());
        // Behind as many inputs as an operator can have stand its parameters.
        const bool has_params = count > type.max_inputs() && type.min_inputs() == type.max_inputs();
        const auto wanted = [&] {
            return type.min_inputs() == type.max_inputs()
                       ? cat(type.min_inputs())
                       : cat("between ", type.min_inputs(), " and ", type.max_inputs());
        };
        if (count < type.min_inputs() || (count > type.max_inputs() && !has_params))
            fail(ErrorKind::invalid_argument, where(op), "takes ", wanted(), " inputs, got ",
                 count);
    }

    /// Parameters that `inputs` names, as tensors of the network, behind the operator's own inputs.
    void check_given_params(const Op& op, std::size_t own, const std::vector<ValueId>& inputs,
                            const std::vector<ParamSpec>& params) const {
        require(inputs.size() == own + params.size() && op.params.empty(), where(op), "takes ", own,
                own == 1 ? " input" : " inputs",
                params.empty() ? std::string()
                               : cat(", behind which its ", params.size(), " parameters may stand"),
                ", got ", inputs.size());
        for (std::size_t i = 0; i < params.size(); ++i) {
            const TensorSpec& given = graph_.spec(inputs[own + i]);
            require(given == params[i].spec, where(op), "input '", op.inputs[own + i], "' is ",
                    name_of(given.dtype), " ", given.shape, ", as parameter ", i, " it must be ",
                    name_of(params[i].spec.dtype), " ", params[i].spec.shape);
        }
    }

    void add_params(const Op& op, const std::vector<ParamSpec>& params,
                    std::vector<ValueId>& inputs) {
        if (!op.params.empty() && op.params.size() != params.size())
            fail(ErrorKind::invalid_argument, where(op), "has ", params.size(),
                 " parameters, `params` names ", op.params.size());
        for (std::size_t i = 0; i < params.size(); ++i) {
            const std::string name = op.params.empty() ? cat(op.name, ".", i) : op.params[i];
            inputs.push_back(add_param(op, name, params[i]));
        }
    }

    ValueId add_param(const Op& op, const std::string& name, const ParamSpec& param) {
        if (auto found = params_.find(name); found != params_.end()) {
            require(graph_.spec(found->second) == param.spec, where(op), "shares parameter '", name,
                    "' of shape ", graph_.shape(found->second), " but needs ", param.spec.shape);
            if (op.frozen) graph_.value(found->second).trainable = false;
            return found->second;
        }
        Value value;
        value.name = name;
        value.spec = param.spec;
        value.role = Role::parameter;
        value.trainable = param.trainable && !op.frozen && is_float(param.spec.dtype);
        value.init = param.init;
        const ValueId id = graph_.add_value(std::move(value));
        params_[name] = id;
        return id;
    }

    void add_outputs() {
        const auto meant = [&](const std::string& name) {
            std::vector<std::string> known;
            for (const auto& tensor : tensors_) known.push_back(tensor.first);
            std::sort(known.begin(), known.end());  // of names as near, the first is meant
            return did_you_mean(name, known);
        };
        require(!description_.outputs.empty(), "the network names no outputs");
        std::set<std::string> named;
        for (const auto& output : description_.outputs) {
            require(named.insert(output.name).second, "output '", output.name, "' is named twice");
            auto found = tensors_.find(output.name);
            if (found == tensors_.end())
                fail(ErrorKind::invalid_argument, "output '", output.name,
                     "' is not made by any operator", meant(output.name));
            graph_.outputs.emplace_back(found->second, output.name);
            const bool named_loss = output.name.rfind("loss", 0) == 0 && !output.plain;
            if (output.loss_weight || named_loss) {
                require(is_float(graph_.spec(found->second).dtype), "loss '", output.name,
                        "' is not a float tensor");
                graph_.losses[found->second] = output.loss_weight.value_or(1.0);
            }
        }
    }

    const NetDescription& description_;
    Graph graph_;
    std::unordered_map<std::string, ValueId> tensors_, params_;
};

}  // namespace

namespace {

/// Whether a type or alias `what` means an operator, as is_named() has it for nodes.
bool is_of_type(const Op& op, const std::string& what) {
    const OperatorRegistry& types = OperatorRegistry::instance();
    const std::string type = types.type_of(op.type);
    return op.type == what || type == what || (type == op.type && types.type_of(what) == type);
}

}  // namespace

std::vector<std::string> override_precisions(
    NetDescription& description, const std::vector<std::pair<std::string, Precision>>& precisions) {
    std::vector<std::string> remarks;
    if (precisions.empty()) return remarks;
    const OperatorRegistry& types = OperatorRegistry::instance();
    std::vector<std::string> known = types.names();
    for (const Op& op : description.operators) known.push_back(op.name);
    std::map<std::string, Precision> asked;
    for (const auto& [what, precision] : precisions) {
        asked[what] = precision;
        const auto answers = [&what = what](const Op& op) {
            return op.name == what || is_of_type(op, what);
        };
        if (std::any_of(description.operators.begin(), description.operators.end(), answers))
            continue;
        const std::string option = cat("precision ", what, "=", name_of(precision), ": ");
        require(types.find(what) != nullptr, option, "the network has no operator '", what, "'",
                did_you_mean(what, known),
                "; gradients, and the nodes that an operator expands into, have the operator's "
                "precision");
        remarks.push_back(cat(option, "the network has no operator of this type"));
    }
    for (Op& op : description.operators) {
        const auto name = asked.find(op.name);
        auto type = asked.find(op.type);
        if (type == asked.end())
            type = std::find_if(asked.begin(), asked.end(),
                                [&](const auto& one) { return is_of_type(op, one.first); });
        if (!op.precision && type != asked.end()) op.precision = type->second;
        if (name != asked.end()) op.precision = name->second;
    }
    return remarks;
}

Graph build_graph(const NetDescription& description,
                  const std::map<std::string, Shape>& input_shapes, std::int64_t batch,
                  bool training, Precision precision) {
    return Builder(description, input_shapes, batch, training, precision).build();
}

}  // namespace dlprim
