// SPDX-License-Identifier: MIT
// The importer: walks the nodes, each by its rule (call.hpp).
#include "formats/onnx/import.hpp"

#include "base/text.hpp"
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace dlprim::onnx {

namespace {

constexpr int deepest_functions = 16;
/// Functions that call each other twice at every depth would make nodes without end.
constexpr std::int64_t most_nodes = 1 << 18;

/// What nodes of the same graph or function know: values by name.
struct Scope {
    std::map<std::string, Ref, std::less<>> values;
    /// Inside a function: what its attributes are for this node.
    const std::map<std::string, Attribute, std::less<>>* attributes = nullptr;
    const std::map<std::string, std::int64_t, std::less<>>* opsets = nullptr;
    int depth = 0;
};

std::string shape_text(const std::vector<Dimension>& shape) {
    std::vector<std::string> dims;
    for (const Dimension& dim : shape)
        dims.push_back(dim.size ? cat(*dim.size) : dim.symbol.empty() ? "?" : dim.symbol);
    return cat("[", join(dims, ", "), "]");
}

class Importer {
  public:
    Importer(const Model& model, const std::map<std::string, Shape>& shapes, std::int64_t batch)
        : model_(model), shapes_(shapes), batch_(batch) {
        for (const Function& function : model_.functions) {
            const auto [place, is_new] =
                functions_.try_emplace({function.domain, function.name}, &function);
            if (!is_new) place->second = nullptr;
        }
    }

    ImportedNet run() {
        check_opset(model_.opsets, cat("'", model_.source, "'"));
        Scope scope;
        scope.opsets = &model_.opsets;
        for (const auto& [name, tensor] : model_.graph.initializers)
            add_initializer(name, tensor, scope);
        std::set<std::string> names;
        for (const ValueInfo& info : fed_inputs(model_)) {
            if (info.name.empty() || !names.insert(info.name).second)
                fail(ErrorKind::format, "'", model_.source, "': an input has ",
                     info.name.empty() ? "no name" : cat("the name '", info.name, "' of another"));
            add_input(info, scope);
        }
        add_nodes(model_.graph.nodes, scope);
        std::vector<std::pair<std::string, Ref>> outputs;
        if (model_.graph.outputs.empty())
            fail(ErrorKind::format, "'", model_.source, "': the graph has no outputs");
        for (const ValueInfo& info : model_.graph.outputs) {
            const Ref value = find(scope, info.name, "the graph's output");
            check_declared(info, value);
            const auto where = cat("'", model_.source, "': the graph's output '", info.name, "' ");
            if (value->spec.shape.empty())
                fail(ErrorKind::unsupported, where, "has shape ", value->spec.shape.str(),
                     ": a network's outputs have at least one element");
            if (!names.insert(info.name).second)
                fail(ErrorKind::unsupported, where,
                     "has the name of an input or of another output, which is not supported");
            outputs.emplace_back(info.name, value);
        }
        ImportedNet net = build_.finish(outputs);
        net.description.source = model_.source;
        return net;
    }

  private:
    static void check_opset(const std::map<std::string, std::int64_t, std::less<>>& opsets,
                            const std::string& what) {
        const auto found = opsets.find("");
        if (found == opsets.end()) return;  // functions alone, or nothing
        if (found->second > newest_opset)
            fail(ErrorKind::unsupported, what, " is of opset ", found->second,
                 "; the newest that this library knows is ", newest_opset);
        if (found->second < oldest_opset)
            fail(ErrorKind::unsupported, what, " is of opset ", found->second,
                 "; the oldest that this library reads is ", oldest_opset);
    }

    void add_initializer(const std::string& name, const Tensor& tensor, Scope& scope) {
        if (tensor.value)
            scope.values[name] = build_.constant(name, tensor.value, true);
        else
            refused_[name] = tensor.refusal;
    }

    void add_input(const ValueInfo& info, Scope& scope) {
        const auto where = cat("'", model_.source, "': input '", info.name, "' ");
        if (!info.dtype)
            fail(ErrorKind::unsupported, where, "is of type ", info.type,
                 ", which this library does not have yet");
        if (!info.shape)
            require(shapes_.count(info.name) > 0, where,
                    "has no declared shape: give it (NetOptions::input_shapes)");
        const Shape shape = info.shape ? input_shape(info, where) : shapes_.at(info.name);
        if (shape.empty())
            fail(ErrorKind::unsupported, where, "has shape ", shape.str(),
                 ": a network's inputs have at least one element");
        scope.values[info.name] = build_.input(info.name, {shape, *info.dtype});
    }

    Shape input_shape(const ValueInfo& info, const std::string& where) {
        const std::vector<Dimension>& declared = *info.shape;
        const auto given = shapes_.find(info.name);
        if (given != shapes_.end())
            require(given->second.rank() == static_cast<int>(declared.size()), where,
                    "is declared as ", shape_text(declared), ", got ", given->second.str());
        std::vector<std::int64_t> sizes;
        for (std::size_t i = 0; i < declared.size(); ++i) {
            const Dimension& dim = declared[i];
            std::int64_t size = dim.size.value_or(0);
            if (given != shapes_.end() && !(i == 0 && dim.size))
                size = given->second[static_cast<int>(i)];
            else if (!dim.size && i == 0)
                size = batch_ > 0 ? batch_ : 1;
            else if (!dim.size && symbols_.count(dim.symbol) && !dim.symbol.empty())
                size = symbols_[dim.symbol];
            else if (!dim.size)
                fail(ErrorKind::invalid_argument, where, "is declared as ", shape_text(declared),
                     ": the model leaves sizes open, give the input's shape");
            if (!dim.size && !dim.symbol.empty()) {
                const auto known = symbols_.emplace(dim.symbol, size).first->second;
                require(known == size, where, "has ", dim.symbol, " = ", size,
                        ", another input has ", known);
            }
            sizes.push_back(size);
        }
        return Shape(sizes);
    }

    Ref find(const Scope& scope, const std::string& name, const char* what) const {
        if (const auto found = scope.values.find(name); found != scope.values.end())
            return found->second;
        if (const auto refused = refused_.find(name); refused != refused_.end())
            fail(ErrorKind::unsupported, what, " '", name, "' ", refused->second);
        fail(ErrorKind::format, what, " '", name, "' is made by no node before it");
    }

    void add_nodes(const std::vector<Node>& nodes, Scope& scope) {
        for (const Node& node : nodes) {
            try {
                add_node(node, scope);
            } catch (const Error& error) {
                if (std::string_view(error.what()).starts_with(cat("'", model_.source, "'"))) throw;
                throw Error(error.kind(),
                            cat("'", model_.source, "': ", where(node, scope), error.what()));
            }
        }
    }

    static std::int64_t version_of(const Node& node, const Scope& scope) {
        const auto found = scope.opsets->find(node.domain);
        return found == scope.opsets->end() ? 1 : found->second;
    }

    static std::string where(const Node& node, const Scope& scope) {
        const std::string name = !node.name.empty()      ? node.name
                                 : !node.outputs.empty() ? node.outputs[0]
                                                         : std::string();
        return cat("[", node.domain, node.domain.empty() ? "" : ".", node.type, " '", name,
                   "', opset ", version_of(node, scope), "] ");
    }

    void add_node(const Node& from, Scope& scope) {
        if (scope.depth > 0 && ++nodes_ > most_nodes)
            fail(ErrorKind::unsupported, "the model's functions stand for more than ", most_nodes,
                 " nodes");
        const Node node = with_attributes(from, scope);
        std::vector<Ref> inputs;
        for (const std::string& name : node.inputs)
            inputs.push_back(name.empty() ? nullptr : find(scope, name, "input"));
        std::vector<Ref> results;
        if (const Function* const function = find_function(node)) {
            results = run_function(*function, node, inputs, scope);
        } else {
            if (!node.domain.empty())
                fail(ErrorKind::unsupported, "operators of domain '", node.domain,
                     "' are not supported");
            const std::int64_t version = version_of(node, scope);
            const Rule* const rule = find_rule(node.type, version);
            if (!rule)
                fail(ErrorKind::unsupported, "this operator is not supported",
                     did_you_mean(node.type, supported_types()));
            Call call(build_, node, version, inputs);
            build_.begin(!node.name.empty()     ? node.name
                         : node.outputs.empty() ? node.type
                                                : node.outputs[0]);
            rule->import(call);
            call.check_all_read();
            results = call.results();
        }
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            const std::string& name = node.outputs[i];
            if (name.empty()) continue;
            if (i < results.size() && results[i]) {
                if (!scope.values.emplace(name, results[i]).second)
                    fail(ErrorKind::format, "output '", name, "' is there already");
                if (const auto info = model_.graph.values.find(name);
                    info != model_.graph.values.end() && scope.depth == 0)
                    check_declared(info->second, results[i]);
            } else {
                refused_[name] =
                    cat("is output ", i, " of ", node.type, ", which is not supported");
            }
        }
    }

    /// The node with attributes in place of references to those of the function that it is in.
    static Node with_attributes(Node node, const Scope& scope) {
        for (auto item = node.attributes.begin(); item != node.attributes.end();) {
            const std::string& refers_to = item->second.refers_to;
            if (refers_to.empty() || !scope.attributes) {
                ++item;
                continue;
            }
            const auto found = scope.attributes->find(refers_to);
            if (found == scope.attributes->end()) {
                item = node.attributes.erase(item);  // not given: the default
            } else {
                item->second = found->second;
                ++item;
            }
        }
        return node;
    }

    const Function* find_function(const Node& node) const {
        const auto found = functions_.find({node.domain, node.type});
        if (found == functions_.end()) return nullptr;
        if (!found->second)
            fail(ErrorKind::unsupported,
                 "the model has several functions of this name; overloads are not supported");
        return found->second;
    }

    std::vector<Ref> run_function(const Function& function, const Node& node,
                                  const std::vector<Ref>& inputs, const Scope& outer) {
        if (outer.depth >= deepest_functions)
            fail(ErrorKind::format, "functions call each other deeper than ", deepest_functions,
                 " times");
        if (inputs.size() > function.inputs.size())
            fail(ErrorKind::format, "the function takes ", function.inputs.size(), " inputs, got ",
                 inputs.size());
        check_opset(function.opsets, "the function");
        Scope scope;
        scope.depth = outer.depth + 1;
        scope.opsets = &function.opsets;
        std::map<std::string, Attribute, std::less<>> attributes = function.defaults;
        for (const auto& [name, attribute] : node.attributes) attributes[name] = attribute;
        scope.attributes = &attributes;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i]) scope.values[function.inputs[i]] = inputs[i];
        add_nodes(function.nodes, scope);
        std::vector<Ref> results;
        for (const std::string& name : function.outputs)
            results.push_back(find(scope, name, "the function's output"));
        return results;
    }

    /// What the model declares of a value must be what its operators make, where it gives sizes.
    void check_declared(const ValueInfo& info, Ref value) const {
        const auto where = cat("'", model_.source, "': tensor '", info.name, "' ");
        if (info.dtype && *info.dtype != value->spec.dtype)
            fail(ErrorKind::format, where, "is declared as ", name_of(*info.dtype), " and is ",
                 name_of(value->spec.dtype));
        if (!info.shape || !shapes_.empty()) return;
        bool agrees = static_cast<int>(info.shape->size()) == value->spec.shape.rank();
        for (int i = 0; agrees && i < value->spec.shape.rank(); ++i) {
            const auto& size = (*info.shape)[static_cast<std::size_t>(i)].size;
            agrees = !size || *size == value->spec.shape[i];
        }
        if (!agrees)
            fail(ErrorKind::format, where, "is declared as ", shape_text(*info.shape), " and is ",
                 value->spec.shape.str());
    }

    const Model& model_;
    const std::map<std::string, Shape>& shapes_;
    std::int64_t batch_;
    Builder build_;
    std::int64_t nodes_ = 0;  ///< of functions
    /// By domain and name; null: the model has several.
    std::map<std::pair<std::string, std::string>, const Function*> functions_;
    std::map<std::string, std::int64_t> symbols_;
    std::map<std::string, std::string> refused_;  ///< values that cannot be had, and why
};

}  // namespace

std::vector<ValueInfo> fed_inputs(const Model& model) {
    std::vector<ValueInfo> inputs;
    for (const ValueInfo& info : model.graph.inputs)
        if (!model.graph.initializers.count(info.name)) inputs.push_back(info);
    return inputs;
}

ImportedNet import_model(const Model& model, const std::map<std::string, Shape>& shapes,
                         std::int64_t batch) {
    try {
        return Importer(model, shapes, batch).run();
    } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with(cat("'", model.source, "'"))) throw;
        throw Error(error.kind(), cat("'", model.source, "': ", error.what()));
    }
}

}  // namespace dlprim::onnx
