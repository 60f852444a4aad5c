// SPDX-License-Identifier: MIT
// Defaults of the operator contract and the registry of operator types.
#include "graph/operator.hpp"

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/plugin/load_engines.hpp"
#include "graph/declared_operator.hpp"
#include "graph/type_hint.hpp"

#include <algorithm>

namespace dlprim {

std::vector<ParamSpec> Operator::params(const Attrs&, std::span<const TensorSpec>) const {
    return {};
}

bool Operator::expand(Graph&, const Node&, std::vector<ValueId>&) const {
    return false;
}

void Operator::gradient(GradientContext& context) const {
    fail(ErrorKind::unsupported, "[", type(), " '", context.node.name, "'] has no gradient");
}

bool Operator::lower(Graph&, const Node&, std::vector<ValueId>&) const {
    return false;
}

double Operator::flops(const Attrs&, std::span<const TensorSpec>,
                       std::span<const TensorSpec>) const {
    return 0;
}

std::pair<int, std::int64_t> Operator::label_input(const Attrs&,
                                                   std::span<const TensorSpec>) const {
    return {-1, 0};
}

void Operator::oracle(OracleCall&) const {
    fail(ErrorKind::unsupported, type(), " has no oracle");
}

void Operator::oracle_backward(OracleBackwardCall&) const {
    fail(ErrorKind::unsupported, type(), " has no backward oracle");
}

namespace {

template <typename Options>
void add_other_names(OperatorRegistry& registry, const Options&) {
    if constexpr (requires { Options::other_names; })
        for (const std::string_view name : Options::other_names)
            registry.add(TypeAlias{name, Options::type});
}

}  // namespace

OperatorRegistry& OperatorRegistry::instance() {
    // Never destroyed, because graphs may live longer than static objects.
    static OperatorRegistry* registry = [] {
        auto* made = new OperatorRegistry;
        register_all_operators(*made, EngineRegistry::instance());
        add_plugin_engines(EngineRegistry::instance());
        std::apply([&](const auto&... options) { (add_other_names(*made, options), ...); },
                   ops::AllOptions());
        std::apply([&](const auto&... options) { (made->add(alias_of(options)), ...); },
                   ops::AllAliases());
        return made;
    }();
    return *registry;
}

void OperatorRegistry::add(std::unique_ptr<Operator> op) {
    by_type_.try_emplace(op->type(), op.get());
    operators_.push_back(std::move(op));
}

void OperatorRegistry::add(const TypeAlias& alias) {
    aliases_.push_back(alias);
    by_alias_.try_emplace(alias.name, &aliases_.back());
}

const TypeAlias* OperatorRegistry::find_alias(std::string_view name) const {
    const auto found = by_alias_.find(name);
    return found == by_alias_.end() ? nullptr : found->second;
}

const Operator* OperatorRegistry::find(std::string_view type) const {
    if (const TypeAlias* const alias = find_alias(type)) type = alias->type;
    const auto found = by_type_.find(type);
    return found == by_type_.end() ? nullptr : found->second;
}

const Operator& OperatorRegistry::get(std::string_view type) const {
    if (const Operator* op = find(type)) return *op;
    fail(ErrorKind::invalid_argument, "there is no operator type '", type, "'",
         type_hint(type, names()));
}

std::string OperatorRegistry::type_of(std::string_view name) const {
    const TypeAlias* const alias = find_alias(name);
    return std::string(alias == nullptr ? name : alias->type);
}

CompleteType OperatorRegistry::complete(std::string_view type, const Attrs& given,
                                        std::string_view where) const {
    CompleteType made{get(type), {}, {}, {}};
    Attrs others, own;
    const Attrs* options = &given;
    for (const auto& [name, value] : given.items()) {
        if (!name.starts_with('@')) continue;
        if (own.items().empty()) others = given;
        own.set(name, value);
        others.erase(name);
        options = &others;
    }
    if (const TypeAlias* alias = find_alias(type)) {
        made.alias = alias->name;
        if (alias->schema != nullptr) {
            made.alias_attrs = alias->schema->complete(*options, where);
            try {
                others = alias->meant(made.alias_attrs);
            } catch (const Error& error) {
                throw Error(error.kind(), cat(where, error.what()));
            }
            options = &others;
        }
    }
    made.attrs = made.op.schema().complete(*options, where);
    if (!made.alias.empty() && made.alias_attrs.items().empty()) made.alias_attrs = made.attrs;
    for (const auto& [name, value] : own.items()) made.attrs.set(name, value);
    return made;
}

std::vector<std::string> OperatorRegistry::types(bool internal) const {
    std::vector<std::string> names;
    for (const auto& op : operators_)
        if (internal || !op->internal()) names.emplace_back(op->type());
    return names;
}

std::vector<std::string> OperatorRegistry::names(bool internal) const {
    std::vector<std::string> all = types(internal);
    for (const TypeAlias& alias : aliases_)
        if (internal || alias.schema != nullptr) all.emplace_back(alias.name);
    return all;
}

bool is_named(const Node& node, std::string_view what) {
    return what == node.op->type() || what == node.alias || what == node.op->problem_type() ||
           (node.alias.empty() && node.op == OperatorRegistry::instance().find(what));
}

}  // namespace dlprim
