// SPDX-License-Identifier: MIT
// Equality and hash of problems.
#include "plan/problem_map.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

namespace dlprim {

namespace {

bool same_operands(const std::vector<Operand>& a, const std::vector<Operand>& b) {
    const auto members = [](const Operand& operand) {
        return std::tie(operand.shape, operand.dtype, operand.constant, operand.layout);
    };
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [&](const Operand& one, const Operand& other) { return members(one) == members(other); });
}

}  // namespace

bool SameProblem::operator()(const Problem& a, const Problem& b) const {
    return a.op == b.op && a.phase == b.phase && a.precision == b.precision &&
           a.by_itself == b.by_itself && same_operands(a.inputs, b.inputs) &&
           same_operands(a.outputs, b.outputs) && a.epilogue == b.epilogue && a.attrs == b.attrs;
}

std::size_t ProblemHash::operator()(const Problem& problem) const noexcept {
    std::size_t hash = std::hash<std::string_view>()(problem.op) + problem.epilogue.size();
    const auto mix = [&](std::int64_t number) {
        hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15;
    };
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            for (int d = 0; d < operand.shape.rank(); ++d) mix(operand.shape[d]);
    return hash ^ hash >> 32;
}

}  // namespace dlprim
