// SPDX-License-Identifier: MIT
// See row_program.hpp.
#include "ops/row_program.hpp"

#include "ops/checks.hpp"

#include <ATen/core/Reduction.h>

#include <algorithm>

namespace dlprim_torch {
namespace {

using Schema = c10::FunctionSchema;

std::string_view base_of(std::string_view overload) {
    return overload.substr(0, overload.find('.'));
}

/// Whether two overloads read the same arguments. Numbers are tensors to PyTorch, too.
bool alike(const Schema& a, const Schema& b) {
    const auto read = [](const Schema& schema) {
        std::vector<std::pair<std::string, c10::TypePtr>> found;
        for (const c10::Argument& argument : schema.arguments())
            if (!argument.is_out()) found.emplace_back(argument.name(), argument.type());
        return found;
    };
    const auto is_value = [](const c10::TypePtr& type) {
        return type->kind() == c10::TypeKind::TensorType ||
               type->kind() == c10::TypeKind::NumberType;
    };
    const auto same = [&](const auto& x, const auto& y) {
        return x.first == y.first &&
               (*x.second == *y.second || (is_value(x.second) && is_value(y.second)));
    };
    const auto first = read(a), second = read(b);
    return std::equal(first.begin(), first.end(), second.begin(), second.end(), same);
}

std::string name_of(const Schema& schema) {
    const std::string name = schema.name().substr(schema.name().rfind(':') + 1);
    return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

bool reduces(const Row& row, const Arguments& arguments) {
    return row.kind == Kind::reduction ||
           (row.kind == Kind::loss && arguments.find("reduction")->toInt() != at::Reduction::None);
}

}  // namespace

std::optional<RowMatch> row_of(const c10::OperatorHandle& op) {
    const std::string wanted = name_of(op.schema());
    std::optional<RowMatch> found;
    for (const Row& row : all_rows()) {
        for (const char* const overload : row.overloads) {
            if (overload == wanted) return RowMatch{&row, op};
            if (found || base_of(overload) != base_of(wanted)) continue;
            const c10::OperatorHandle other = operator_of(overload);
            if (alike(other.schema(), op.schema())) found = RowMatch{&row, other};
        }
    }
    return found;
}

RowProgram row_program(const RowMatch& match, torch::jit::Stack& stack, std::int64_t numel) {
    const Row& row = *match.row;
    const Arguments arguments(match.op, stack);
    const at::Tensor& self = arguments.inputs().front();
    const bool over_dims = row.kind == Kind::reduction;
    Circumstances of{.common = over_dims ? self.scalar_type() : common_type(row, arguments),
                     .numel = numel};
    RowProgram made;
    if (over_dims) {
        of.axes = axes_of(reduced_dims(arguments, self.dim()), self.dim());
        const c10::IValue* const keeps = arguments.find("keepdim");
        made.keep_dim = keeps != nullptr && keeps->toBool();
    } else if (reduces(row, arguments)) {
        of.axes = "[]";
    }
    made.first = program_of(row, arguments, of);
    if (!made.first.goes_on) return made;
    const bool wide = over_dims && of.common != at::kDouble;
    made.result =
        at::empty({0}, at::TensorOptions().device(at::kMeta).dtype(wide ? at::kFloat : of.common));
    of.second = true;
    of.result = made.result;
    made.second = program_of(row, arguments, of);
    return made;
}

}  // namespace dlprim_torch
