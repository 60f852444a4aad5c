// SPDX-License-Identifier: MIT
// Verdicts and compiler options for kernels of several types of elements.
#include "engine/element_types.hpp"

#include "base/text.hpp"
#include "engine/kernel_type.hpp"
#include "engine/storage.hpp"

namespace dlprim {

Verdict has_double(const Traits& device, DType dtype) {
    if (dtype != DType::f64 || device.fp64) return Verdict::yes();
    return Verdict::no("it needs double precision (cl_khr_fp64), which the device lacks");
}

Verdict one_float_type(const Traits& device, const Problem& problem, std::size_t inputs,
                       std::size_t outputs) {
    const DType dtype = problem.inputs.at(0).dtype;
    if (!is_float(dtype))
        return Verdict::no(cat("it does not support tensors of type ", name_of(dtype)));
    const auto differs = [&](const Operand& operand) {
        return Verdict::no(cat("it needs tensors of one type, not ", name_of(dtype), " and ",
                               name_of(operand.dtype)));
    };
    for (std::size_t i = 0; i < inputs && i < problem.inputs.size(); ++i)
        if (problem.inputs[i].dtype != dtype) return differs(problem.inputs[i]);
    for (std::size_t i = 0; i < outputs && i < problem.outputs.size(); ++i)
        if (problem.outputs[i].dtype != dtype) return differs(problem.outputs[i]);
    return has_double(device, dtype);
}

std::string element_options(DType dtype) {
    if (is_activation_type(dtype))
        return storage_options({{'A', dtype}, {'B', dtype}, {'C', dtype}, {'R', dtype}});
    if (dtype == DType::f64) return " -DELEMENT=double -DREAL=double -DDOUBLES";
    return cat(" -DELEMENT=", kernel_type(dtype), " -DREAL=long");
}

}  // namespace dlprim
