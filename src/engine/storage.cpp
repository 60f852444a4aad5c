// SPDX-License-Identifier: MIT
// Verdicts and compiler options of engines that read and write 16 bits.
#include "engine/storage.hpp"

#include "base/text.hpp"
#include "engine/engine.hpp"

#include <algorithm>

namespace dlprim {

bool is_activation_type(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

Verdict storage_verdict(const Problem& problem, std::initializer_list<int> inputs, bool output) {
    const auto check = [&](const Operand& operand, bool narrow) {
        return operand.dtype == DType::f32 || (narrow && is_activation_type(operand.dtype));
    };
    const auto no = [](const char* what, std::size_t i, DType dtype) {
        return Verdict::no(cat("it does not support ", name_of(dtype), " as ", what, " ", i));
    };
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
        const int number = static_cast<int>(i);
        bool narrow = std::find(inputs.begin(), inputs.end(), number) != inputs.end();
        for (const EpilogueStage& stage : problem.epilogue)
            if (stage.kind == EpilogueStage::Kind::add && stage.operand == number) narrow = output;
        if (!check(problem.inputs[i], narrow)) return no("input", i, problem.inputs[i].dtype);
    }
    for (std::size_t i = 0; i < problem.outputs.size(); ++i)
        if (!check(problem.outputs[i], output && i == 0))
            return no("output", i, problem.outputs[i].dtype);
    return Verdict::yes();
}

std::string storage_options(std::initializer_list<std::pair<char, DType>> tensors) {
    std::string options;
    for (const auto& [name, dtype] : tensors) {
        if (dtype == DType::f32) continue;
        const bool bfloat = dtype == DType::bf16;
        options += cat(" -D", name, "_STORED=", bfloat ? 2 : 1);
        if (bfloat && name == 'C') options += " -DSTORES_BFLOAT";
    }
    return options;
}

}  // namespace dlprim
