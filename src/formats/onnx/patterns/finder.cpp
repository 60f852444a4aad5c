// SPDX-License-Identifier: MIT
// Finder, and the row of patterns; see finder.hpp and patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

Finder::Finder(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs,
               const Builder& builder, MadeValues& made)
    : operators_(operators), builder_(builder), made_(made) {
    for (Ref value : outputs) ++uses_[value];
    for (std::size_t i = 0; i < operators_.size(); ++i) {
        retain(operators_[i]);
        for (Ref value : operators_[i].outputs) makers_[value] = i;
    }
}

int Finder::uses(Ref value) const {
    const auto found = uses_.find(value);
    return found == uses_.end() ? 0 : found->second;
}

bool Finder::is_dead(const BuiltOperator& op) const {
    return std::all_of(op.outputs.begin(), op.outputs.end(),
                       [&](Ref value) { return uses(value) == 0; });
}

BuiltOperator* Finder::maker(Ref value) {
    const auto found = makers_.find(value);
    return found == makers_.end() ? nullptr : &operators_[found->second];
}

BuiltOperator* Finder::sole_maker(Ref value, std::string_view type) {
    BuiltOperator* const op = sole_maker(value);
    return op && op->type == type ? op : nullptr;
}

void Finder::retain(const BuiltOperator& op) {
    for (const auto* list : {&op.inputs, &op.params})
        for (Ref value : *list) ++uses_[value];
}

void Finder::release(const std::vector<Ref>& values) {
    std::vector<Ref> pending = values;
    while (!pending.empty()) {
        const Ref value = pending.back();
        pending.pop_back();
        if (--uses_[value] > 0) continue;
        const BuiltOperator* const op = maker(value);
        if (!op || !is_dead(*op)) continue;
        pending.insert(pending.end(), op->inputs.begin(), op->inputs.end());
        pending.insert(pending.end(), op->params.begin(), op->params.end());
    }
}

void Finder::rewrite(BuiltOperator& op, std::string_view type, const Attrs& options,
                     const std::vector<Ref>& inputs, const std::vector<Ref>& params) {
    std::vector<Ref> old = op.inputs;
    old.insert(old.end(), op.params.begin(), op.params.end());
    op.type = type;
    op.options = options;
    op.inputs = inputs;
    op.params = params;
    retain(op);
    release(old);
}

Ref Finder::replace_output(BuiltOperator& op, const Shape& shape) {
    made_.values.push_back({{shape, op.outputs[0]->spec.dtype}});
    makers_[&made_.values.back()] = static_cast<std::size_t>(&op - operators_.data());
    op.outputs[0] = &made_.values.back();
    return op.outputs[0];
}

Ref Finder::replace_known(Ref old, HostValue value) {
    made_.values.push_back({old->spec, std::move(value), old->stored});
    made_.names[&made_.values.back()] = builder_.name_of(old);
    return &made_.values.back();
}

Ref Finder::make_known(const BuiltOperator& op, std::string_view what, HostValue value) {
    const TensorSpec spec{value->shape, value->dtype};
    made_.values.push_back({spec, std::move(value), true});
    made_.names[&made_.values.back()] = cat(op.name, ".", what);
    return &made_.values.back();
}

bool has_text(const BuiltOperator& op, std::string_view option, std::string_view text) {
    return op.options.has(option) && op.options.text(option) == text;
}

bool boolean_of(const BuiltOperator& op, std::string_view option) {
    return op.options.has(option) && op.options.boolean(option);
}

bool is_elementwise(const BuiltOperator& op, std::string_view operation) {
    return op.type == "Elementwise" && has_text(op, "operation", operation);
}

bool is_code(const BuiltOperator& op, std::string_view code) {
    return op.type == "Pointwise" && has_text(op, "code", code);
}

std::optional<double> scalar_of(const BuiltOperator& op, std::string_view code) {
    if (!is_code(op, code) || !op.options.has("scalars")) return std::nullopt;
    const Doubles scalars = op.options.numbers("scalars");
    return scalars.size() == 1 ? std::optional(scalars[0]) : std::nullopt;
}

bool is_expression(const BuiltOperator& op, std::string_view code, double scalar) {
    const std::optional<double> given = scalar_of(op, code);
    return given && std::abs(*given - scalar) <= 1e-6 * std::abs(scalar);
}

std::optional<double> uniform(Ref value) {
    if (!value->known || !is_float(value->spec.dtype) || value->spec.shape.empty())
        return std::nullopt;
    const std::vector<double> numbers = to_numbers(*value->known);
    const bool same = std::all_of(numbers.begin(), numbers.end(),
                                  [&](double number) { return number == numbers[0]; });
    return same ? std::optional(numbers[0]) : std::nullopt;
}

void merge_patterns(std::vector<BuiltOperator>& operators, const std::set<Ref>& outputs,
                    const Builder& builder, MadeValues& made) {
    Finder finder(operators, outputs, builder, made);
    merge_activations(finder);
    merge_norms(finder);
    merge_attention(finder);
    merge_affine(finder);
    merge_padding(finder);
    merge_quantization(finder);
}

}  // namespace dlprim::onnx
