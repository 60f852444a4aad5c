// SPDX-License-Identifier: MIT
// Defaults of the operator contract and the registry of operator types.
#include "graph/operator.hpp"

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/type_hint.hpp"

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

OperatorRegistry& OperatorRegistry::instance() {
    // Never destroyed, because graphs may live longer than static objects.
    static OperatorRegistry* registry = [] {
        auto* made = new OperatorRegistry;
        register_all_operators(*made, EngineRegistry::instance());
        return made;
    }();
    return *registry;
}

void OperatorRegistry::add(std::unique_ptr<Operator> op) {
    operators_.push_back(std::move(op));
}

const Operator* OperatorRegistry::find(std::string_view type) const {
    for (const auto& op : operators_)
        if (op->type() == type) return op.get();
    return nullptr;
}

const Operator& OperatorRegistry::get(std::string_view type) const {
    if (const Operator* op = find(type)) return *op;
    fail(ErrorKind::invalid_argument, "there is no operator type '", type, "'",
         type_hint(type, types()));
}

std::vector<std::string> OperatorRegistry::types(bool internal) const {
    std::vector<std::string> names;
    for (const auto& op : operators_)
        if (internal || !op->internal()) names.emplace_back(op->type());
    return names;
}

}  // namespace dlprim
