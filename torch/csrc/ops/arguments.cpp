// SPDX-License-Identifier: MIT
// See arguments.hpp.
#include "ops/arguments.hpp"

#include "memory/view.hpp"

#include <algorithm>

namespace dlprim_torch {
namespace {

double number(const c10::IValue& value) {
    return value.isBool() ? static_cast<double>(value.toBool()) : value.toScalar().to<double>();
}

bool holds(const Condition& condition, const Arguments& arguments, at::ScalarType common) {
    const std::string_view value = condition.value;
    if (std::string_view(condition.argument) == "common") {
        if (value == "bool") return common == at::kBool;
        if (value == "integral") return at::isIntegralType(common, false);
        return at::isFloatingType(common);
    }
    const c10::IValue* const given = arguments.find(condition.argument);
    const bool none =
        given == nullptr || given->isNone() || (given->isTensor() && !given->toTensor().defined());
    if (value == "none") return none;
    if (none) return false;
    if (value == "some") return true;
    if (given->isBool()) return given->toBool() == (value == "true");
    return given->isString() && given->toStringRef() == value;
}

const Variant& variant_of(const Row& row, const Arguments& arguments, at::ScalarType common) {
    for (const Variant& variant : row.variants)
        if (std::all_of(variant.conditions.begin(), variant.conditions.end(),
                        [&](const Condition& c) { return holds(c, arguments, common); }))
            return variant;
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "The device \"ocl\" has no expression for these arguments of ",
                                row.overloads.front(), ".");
}

/// The place of `tensor` among the inputs, where it is put if it is not there yet.
std::size_t place_of(std::vector<at::Tensor>& inputs, const at::Tensor& tensor) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].is_same(tensor)) return i;
    inputs.push_back(tensor);
    return inputs.size() - 1;
}

std::string named(char kind, std::size_t number) {
    std::string name(1, kind);
    return name += std::to_string(number);
}

std::string operand(Program& program, const c10::IValue& value) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        if (!tensor.is_cpu() || tensor.dim() > 0)
            return named('x', place_of(program.inputs, tensor));
        program.scalars.push_back(tensor.item().to<double>());
    } else {
        program.scalars.push_back(number(value));
    }
    return named('p', program.scalars.size() - 1);
}

}  // namespace

Arguments::Arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack)
    : schema_(op.schema()), stack_(stack) {
    const auto& all = schema_.arguments();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const c10::IValue& value = stack[stack.size() - all.size() + i];
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        const bool written = all[i].alias_info() != nullptr && all[i].alias_info()->isWrite();
        if (written) outs_.push_back(value.toTensor());
        if (!written || !all[i].is_out()) inputs_.push_back(value.toTensor());
    }
}

const c10::IValue* Arguments::find(std::string_view name) const {
    const auto& all = schema_.arguments();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name() == name) return &stack_[stack_.size() - all.size() + i];
    return nullptr;
}

void Arguments::give_back(std::vector<at::Tensor> results) {
    torch::jit::drop(stack_, schema_.arguments().size());
    results.resize(returns());
    for (at::Tensor& result : results) stack_.emplace_back(std::move(result));
}

Program program_of(const Row& row, const Arguments& arguments, at::ScalarType common,
                   const std::string& axes) {
    Program program;
    for (const Piece& piece : variant_of(row, arguments, common).pieces) {
        program.code += piece.text;
        if (piece.argument == nullptr) continue;
        if (std::string_view(piece.argument) == "[dim]") {
            program.code += axes;
            continue;
        }
        const c10::IValue* const value = arguments.find(piece.argument);
        TORCH_INTERNAL_ASSERT(value != nullptr,
                              "an expression names an argument that is not there");
        program.code += operand(program, *value);
    }
    return program;
}

bool serves(const Arguments& arguments) {
    const auto fits = [](const at::Tensor& tensor) {
        return has_dtype(tensor.scalar_type()) && tensor.dim() <= dp::Shape::max_rank;
    };
    return std::all_of(arguments.inputs().begin(), arguments.inputs().end(), fits) &&
           std::all_of(arguments.outs().begin(), arguments.outs().end(), fits);
}

}  // namespace dlprim_torch
