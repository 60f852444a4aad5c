// SPDX-License-Identifier: MIT
// Importer: the walk over nodes, in graphs, functions, and graphs that nodes own; see importer.hpp.
#include "formats/onnx/importer.hpp"

#include "base/text.hpp"
#include "formats/onnx/node_order.hpp"
#include "formats/onnx/wide_rank.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

constexpr int deepest_functions = 16;

std::vector<std::string> names_of(const std::vector<ValueInfo>& values) {
    std::vector<std::string> names;
    names.reserve(values.size());
    for (const ValueInfo& value : values) names.push_back(value.name);
    return names;
}

std::int64_t version_of(const Node& node,
                        const std::map<std::string, std::int64_t, std::less<>>& opsets) {
    const auto found = opsets.find(node.domain);
    return found == opsets.end() ? 1 : found->second;
}

/// "[Reshape 'name', opset 17] ".
std::string where(const Node& node,
                  const std::map<std::string, std::int64_t, std::less<>>& opsets) {
    const std::string name = !node.name.empty()      ? node.name
                             : !node.outputs.empty() ? node.outputs[0]
                                                     : std::string();
    return cat("[", node.domain, node.domain.empty() ? "" : ".", node.type, " '", name, "', opset ",
               version_of(node, opsets), "] ");
}

/// The node with attributes in place of references to those of the function that it is in.
Node with_attributes(Node node, const Attributes& given) {
    for (auto item = node.attributes.begin(); item != node.attributes.end();) {
        const std::string& refers_to = item->second.refers_to;
        if (refers_to.empty()) {
            ++item;
            continue;
        }
        const auto found = given.find(refers_to);
        if (found == given.end()) {
            item = node.attributes.erase(item);  // not given: the default
        } else {
            item->second = found->second;
            ++item;
        }
    }
    return node;
}

bool has_strings(const std::vector<AnyValue>& values) {
    bool has = false;
    for (const AnyValue& value : values)
        value.each_tensor([&](Ref tensor) { has = has || tensor->strings; });
    return has;
}

/// A caller gets tensors that a Shape holds, also in sequences.
void check_rank(const std::string& output, const AnyValue& value) {
    if (value.is_wide())
        fail(ErrorKind::unsupported, "the graph's output '", output, "' is ", value.str(),
             "; outputs have at most ", Shape::max_rank, " dimensions");
    if (value.sequence())
        for (const AnyValue& element : *value.sequence()) check_rank(output, element);
}

/// Strings and numbers must not become one tensor, in which numbers would stand for strings.
void check_moved(const Rule& rule, const std::vector<AnyValue>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool moves = (rule.moved_inputs >> std::min<std::size_t>(i, 31) & 1) != 0;
        inputs[i].each_tensor([&](Ref tensor) {
            if (tensor->strings != moves)
                fail(ErrorKind::format, "input ", i, " is ", AnyValue(tensor).str(), "; it must ",
                     moves ? "be of strings, as another input is" : "be of numbers");
        });
    }
}

}  // namespace

Importer::Importer(const Model& model, const ImportLimits& limits)
    : model_(model), limits_(limits) {
    build_.limit_known_bytes(limits.known_bytes);
    main_.opsets = &model.opsets;
    main_.is_main = true;
    for (const Function& function : model_.functions) {
        const auto [place, is_new] =
            functions_.try_emplace({function.domain, function.name}, &function);
        if (!is_new) place->second = nullptr;
    }
}

void Importer::run_stages_by(StageRunner& runner) {
    build_.run_stages_by(runner, [this](std::set<Ref>& live) { add_live(live); });
}

std::vector<std::pair<std::string, AnyValue>> Importer::run() {
    check_opset(model_.opsets, cat("'", model_.source, "'"));
    if (model_.graph.outputs.empty())
        fail(ErrorKind::format, "'", model_.source, "': the graph has no outputs");
    add_nodes(model_.graph.nodes, names_of(model_.graph.outputs), main_);
    first_of_node_ = 0;  // reading an output may run a stage, of which every other one is wanted
    std::vector<std::pair<std::string, AnyValue>> outputs;
    for (const ValueInfo& info : model_.graph.outputs) {
        outputs.emplace_back(info.name, find(main_, info.name, "the graph's output"));
        check_rank(info.name, outputs.back().second);
        check_declared(info, outputs.back().second);
    }
    return outputs;
}

void Importer::check_opset(const std::map<std::string, std::int64_t, std::less<>>& opsets,
                           const std::string& what) const {
    const auto found = opsets.find("");
    if (found == opsets.end()) return;  // functions alone, or nothing
    if (found->second > newest_opset)
        fail(ErrorKind::unsupported, what, " is of opset ", found->second,
             "; the newest that this library knows is ", newest_opset);
    if (found->second < oldest_opset)
        fail(ErrorKind::unsupported, what, " is of opset ", found->second,
             "; the oldest that this library reads is ", oldest_opset);
}

const AnyValue* Importer::look_up(const Scope& scope, const std::string& name) const {
    for (const Scope* at = &scope; at; at = at->parent)
        if (const auto found = at->values.find(name); found != at->values.end())
            return &found->second;
    return nullptr;
}

AnyValue Importer::find(const Scope& scope, const std::string& name, const char* what) const {
    if (const AnyValue* const found = look_up(scope, name)) return *found;
    if (const auto refused = refused_.find(name); refused != refused_.end())
        fail(ErrorKind::unsupported, what, " '", name, "' ", refused->second);
    fail(ErrorKind::format, what, " '", name,
         "' is made by no node, and is no input and no initialiser");
}

const Importer::LastUses& Importer::last_uses(const std::vector<Node>& nodes,
                                              const std::vector<std::string>& outputs) {
    LastUses& uses = last_uses_[nodes.data()];
    if (!uses.empty()) return uses;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_name_read(nodes[i], [&](const std::string& name) { uses[name] = i; });
    for (const std::string& name : outputs) uses[name] = nodes.size();
    return uses;
}

void Importer::add_live(std::set<Ref>& live) const {
    const auto add = [&](Ref value) { live.insert(value); };
    for (const Scope* scope : active_) {
        for (const auto& [name, value] : scope->values) {
            const auto use = scope->last_uses->find(name);
            if (use != scope->last_uses->end() && use->second >= scope->at) value.each_tensor(add);
        }
    }
    for (const Call* call : calls_)
        for (const AnyValue& value : call->kept) value.each_tensor(add);
    for (int i = first_of_node_; i < build_.values(); ++i) live.insert(build_.value(i));
}

void Importer::add_nodes(const std::vector<Node>& nodes, const std::vector<std::string>& outputs,
                         Scope& scope) {
    scope.last_uses = &last_uses(nodes, outputs);
    active_.push_back(&scope);
    for (scope.at = 0; scope.at < nodes.size(); ++scope.at) {
        const Node& node = nodes[scope.at];
        try {
            add_node(node, scope);
        } catch (const Error& error) {
            if (std::string_view(error.what()).starts_with(cat("'", model_.source, "'"))) throw;
            throw Error(error.kind(),
                        cat("'", model_.source, "': ", where(node, *scope.opsets), error.what()));
        }
    }
    active_.pop_back();
}

void Importer::count_inner_node() {
    if (++nodes_ > limits_.nodes)
        fail(ErrorKind::unsupported,
             "the model's functions, branches and loops stand for more than ", limits_.nodes,
             " nodes (max_nodes)");
}

void Importer::add_node(const Node& from, Scope& scope) {
    if (!scope.is_main) count_inner_node();
    std::optional<Node> with_own;
    if (scope.attributes != nullptr) with_own = with_attributes(from, *scope.attributes);
    const Node& node = with_own ? *with_own : from;
    std::vector<AnyValue> inputs;
    for (const std::string& name : node.inputs)
        inputs.push_back(name.empty() ? AnyValue() : find(scope, name, "input"));
    first_of_node_ = build_.values();
    const Function* const function = find_function(node);
    const std::vector<std::optional<AnyValue>> results =
        function ? run_function(*function, node, inputs, scope) : import_node(node, inputs, scope);
    count_node(results, scope);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const std::string& name = node.outputs[i];
        if (name.empty()) continue;
        if (i >= results.size() || !results[i]) {
            refused_[name] = cat("is output ", i, " of ", node.type, ", which is not supported");
            continue;
        }
        if (!scope.values.emplace(name, *results[i]).second)
            fail(ErrorKind::format, "output '", name, "' is there already");
        if (const auto info = model_.graph.values.find(name);
            info != model_.graph.values.end() && scope.is_main)
            check_declared(info->second, *results[i]);
    }
}

void Importer::count_node(const std::vector<std::optional<AnyValue>>& results, const Scope& scope) {
    int newest = last_operator_;
    for (const auto& result : results)
        if (result)
            result->each_tensor([&](Ref tensor) { newest = std::max(newest, tensor->producer); });
    if (scope.is_main && newest == last_operator_) ++host_nodes_;
    if (scope.is_main) last_operator_ = newest;
}

std::vector<std::optional<AnyValue>> Importer::import_node(const Node& node,
                                                           const std::vector<AnyValue>& inputs,
                                                           Scope& scope) {
    const std::string type = node.domain.empty() ? node.type : cat(node.domain, ".", node.type);
    const std::int64_t version = version_of(node, *scope.opsets);
    const Rule* const rule = find_rule(type, version);
    if (!rule && !has_rules_of(node.domain))
        fail(ErrorKind::unsupported, "operators of domain '", node.domain, "' are not supported");
    if (!rule)
        fail(ErrorKind::unsupported, "this operator is not supported",
             did_you_mean(type, supported_types()));
    const bool of_strings = has_strings(inputs);
    if (of_strings && rule->strings == Rule::Strings::none)
        fail(ErrorKind::unsupported, "an input is of strings, which are not supported here");
    if (of_strings && rule->strings == Rule::Strings::moved) check_moved(*rule, inputs);
    const auto named = std::find_if(node.outputs.begin(), node.outputs.end(),
                                    [](const std::string& output) { return !output.empty(); });
    build_.begin(!node.name.empty() ? node.name : named == node.outputs.end() ? node.type : *named);
    const std::optional<MergedNode> merged = merge_dimensions(build_, node, *rule, version, inputs);
    Call call(build_, *this, merged ? merged->node : node, version,
              merged ? merged->inputs : inputs);
    calls_.push_back(&call);
    rule->import(call);
    calls_.pop_back();
    call.check_all_read();
    std::vector<std::optional<AnyValue>> results = call.results();
    for (auto& result : results) {
        if (merged && result && result->tensor())
            result = merged->restored(build_, result->tensor());
        if (of_strings && rule->strings == Rule::Strings::moved && result)
            result->each_tensor([&](Ref tensor) { build_.as_strings(tensor); });
    }
    return results;
}

const Function* Importer::find_function(const Node& node) const {
    const auto found = functions_.find({node.domain, node.type});
    if (found == functions_.end()) return nullptr;
    if (!found->second)
        fail(ErrorKind::unsupported,
             "the model has several functions of this name; overloads are not supported");
    return found->second;
}

std::vector<std::optional<AnyValue>> Importer::run_function(const Function& function,
                                                            const Node& node,
                                                            const std::vector<AnyValue>& inputs,
                                                            const Scope& outer) {
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
    Attributes attributes = function.defaults;
    for (const auto& [name, attribute] : node.attributes) attributes[name] = attribute;
    scope.attributes = &attributes;
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
        scope.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : AnyValue();
    add_nodes(function.nodes, function.outputs, scope);
    std::vector<std::optional<AnyValue>> results;
    for (const std::string& name : function.outputs)
        results.emplace_back(find(scope, name, "the function's output"));
    return results;
}

std::vector<AnyValue> Importer::run_graph(const Graph& graph, const std::vector<AnyValue>& inputs) {
    if (inputs.size() != graph.inputs.size())
        fail(ErrorKind::format, "graph '", graph.name, "' takes ", graph.inputs.size(),
             " inputs, got ", inputs.size());
    count_inner_node();  // an empty body takes time, too
    const Scope& outer = *active_.back();
    Scope scope;
    scope.parent = &outer;
    scope.opsets = outer.opsets;
    scope.attributes = outer.attributes;
    scope.depth = outer.depth;
    const auto [stored, is_new] = initializers_.try_emplace(&graph);
    if (is_new) {
        add_initializers(graph, scope);
        stored->second = scope.values;
    }
    scope.values = stored->second;
    for (std::size_t i = 0; i < inputs.size(); ++i) scope.values[graph.inputs[i].name] = inputs[i];
    add_nodes(graph.nodes, names_of(graph.outputs), scope);
    std::vector<AnyValue> outputs;
    for (const ValueInfo& info : graph.outputs)
        outputs.push_back(find(scope, info.name, "the graph's output"));
    return outputs;
}

/// What the model declares of a value must be what its operators make, where it gives sizes.
void Importer::check_declared(const ValueInfo& info, const AnyValue& value) const {
    const Ref tensor = value.elements();
    if (!tensor || tensor->strings || info.optional) return;
    const auto where = [&] { return cat("'", model_.source, "': tensor '", info.name, "' "); };
    if (info.dtype && *info.dtype != tensor->spec.dtype)
        fail(ErrorKind::format, where(), "is declared as ", name_of(*info.dtype), " and is ",
             name_of(tensor->spec.dtype));
    if (!info.shape || !checks_shapes_) return;
    const Ints dims = value.dims();
    const bool agrees = std::equal(info.shape->begin(), info.shape->end(), dims.begin(), dims.end(),
                                   [](const Dimension& declared, std::int64_t size) {
                                       return declared.size.value_or(size) == size;
                                   });
    if (!agrees)
        fail(ErrorKind::format, where(), "is declared as ", shape_text(*info.shape), " and is ",
             sizes_text(dims));
}

}  // namespace dlprim::onnx
