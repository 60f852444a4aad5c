// SPDX-License-Identifier: MIT
// Elements in kernels; see element.hpp.
#include "engine/element.hpp"

#include "engine/kernel_type.hpp"

namespace dlprim {

std::string element_defines(DType dtype) {
    int kind = 4;
    if (dtype == DType::f32) kind = 0;
    if (dtype == DType::f16) kind = 1;
    if (dtype == DType::bf16) kind = 2;
    if (dtype == DType::f64) kind = 3;
    if (dtype == DType::boolean) kind = 5;
    const char* const element = kernel_type(dtype);
    const bool is_wide = kind == 1 || kind == 2;
    return cat(" -DKIND=", kind, " -DT=", element, " -DVALUE=", is_wide ? "float" : element);
}

void require_comparable(DType dtype) {
    require(!is_narrow(dtype), "elements of ", name_of(dtype),
            " are only moved, not compared or added up; cast them");
}

}  // namespace dlprim
