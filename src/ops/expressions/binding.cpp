// SPDX-License-Identifier: MIT
// Names of a row's expressions to inputs and scalars, and back to the text of a program.
#include "ops/expressions/binding.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::expressions {

namespace {

bool uses_scalar(const pointwise::ExprPtr& expr, int number) {
    if (expr->kind == pointwise::Expr::Kind::scalar) return expr->number == number;
    return std::any_of(expr->args.begin(), expr->args.end(),
                       [&](const auto& arg) { return uses_scalar(arg, number); });
}

}  // namespace

Binding::Binding(const Row& row, const Attrs& attrs, std::int64_t count)
    : formula_(row.formula(attrs)),
      reduced_(row.reduced),
      operands_(static_cast<int>(row.inputs.size()) + (row.parameter ? 1 : 0)) {
    std::vector<std::string> inputs = row.inputs;
    if (row.parameter) inputs.push_back(row.parameter->name);
    if (row.differentiable) inputs.insert(inputs.end(), {"dy", "y"});
    for (std::size_t i = 0; i < inputs.size(); ++i) names_ += cat(inputs[i], " = x", i, "; ");
    const auto add = [&](const std::string& name, double value) {
        names_ += cat(name, " = p", scalars_.size(), "; ");
        scalars_.push_back(value);
    };
    for (const OptionSpec& option : row.schema().options())
        if (option.kind == OptionKind::number)
            add(std::string(option.text.name), attrs.number(option.text.name));
    for (const auto& [name, value] : formula_.numbers) add(name, value);
    if (reduced_)
        add("factor", attrs.text("reduce") == "mean" ? 1.0 / static_cast<double>(count) : 1.0);
}

pointwise::ExprPtr Binding::parsed(const std::string& text) const {
    return pointwise::parse(names_ + "y0 = " + text).outputs.at(0).value;
}

pointwise::ExprPtr Binding::value() const {
    return parsed(reduced_ ? cat("(", formula_.value, ") * factor") : formula_.value);
}

pointwise::ExprPtr Binding::gradient(int operand) const {
    namespace pw = pointwise;
    const auto i = static_cast<std::size_t>(operand);
    if (i < formula_.gradients.size() && !formula_.gradients[i].empty())
        return formula_.gradients[i] == "0" ? nullptr : parsed(formula_.gradients[i]);
    const pw::ExprPtr slope = pw::differentiate(value(), operand);
    return slope ? pw::simplify(pw::call("mul", {pw::input(dy()), slope})) : nullptr;
}

Code code_of(const Binding& binding, std::span<const pointwise::ExprPtr> expressions,
             const Ints& summed_axes) {
    namespace pw = pointwise;
    const auto any = [&](auto&& uses) {
        return std::any_of(expressions.begin(), expressions.end(), uses);
    };
    Code code;
    std::vector<pw::ExprPtr> inputs(static_cast<std::size_t>(binding.operands()) + 2), scalars;
    const auto take = [&](int i) {
        if (!any([&](const auto& expr) { return pw::uses_input(expr, i); })) return;
        inputs[static_cast<std::size_t>(i)] = pw::input(static_cast<int>(code.inputs.size()));
        code.inputs.push_back(i);
    };
    take(binding.dy());
    take(binding.y());
    for (int i = 0; i < binding.operands(); ++i) take(i);
    for (int i = 0; i < static_cast<int>(binding.scalars().size()); ++i) {
        const bool used = any([&](const auto& expr) { return uses_scalar(expr, i); });
        scalars.push_back(used ? pw::scalar(static_cast<int>(code.scalars.size())) : nullptr);
        if (used) code.scalars.push_back(binding.scalars()[static_cast<std::size_t>(i)]);
    }
    pw::Program program;
    program.inputs = static_cast<int>(code.inputs.size());
    program.scalars = static_cast<int>(code.scalars.size());
    for (const pw::ExprPtr& expr : expressions) {
        pw::Output output;
        if (!summed_axes.empty()) output.kind = pw::Output::Kind::sum;
        output.value = pw::substitute(expr, inputs, scalars);
        output.axes = summed_axes;
        program.outputs.push_back(std::move(output));
    }
    code.text = pw::print(program);
    return code;
}

}  // namespace dlprim::expressions
