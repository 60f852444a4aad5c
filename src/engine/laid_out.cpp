// SPDX-License-Identifier: MIT
// Sets the layouts of a problem's operands.
#include "engine/laid_out.hpp"

#include <cstddef>

namespace dlprim {

Problem with_layouts(Problem problem, const LayoutChoice& layouts) {
    for (std::size_t i = 0; i < problem.inputs.size(); ++i)
        problem.inputs[i].layout = layouts.inputs.at(i);
    for (std::size_t i = 0; i < problem.outputs.size(); ++i)
        problem.outputs[i].layout = layouts.outputs.at(i);
    return problem;
}

Problem plain_problem(Problem problem) {
    for (auto* operands : {&problem.inputs, &problem.outputs})
        for (Operand& operand : *operands) operand.layout = Layout::plain();
    return problem;
}

}  // namespace dlprim
