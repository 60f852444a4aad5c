// SPDX-License-Identifier: MIT
// Values for tensors by the name of their kind. They are the same with every compiler.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <random>
#include <string>

namespace dlprim {

/// A number of a normal distribution. The standard library's distributions differ among compilers.
double draw_normal(std::mt19937& random);

/// An input or parameter of a case: its type and shape, and how it is filled.
struct CaseTensor {
    Shape shape = {};
    DType dtype = DType::f32;
    /// "normal", "uniform", "positive", "distinct", "equal"; "labels": below `classes`; "indices":
    /// those and the same counted from the end; "once": labels of which none comes twice
    std::string fill = "normal";
    double min = -1, max = 1;  ///< of "uniform"
    std::int64_t classes = 2;
};

/// Values that the tensor's type can hold. They depend on the state of `random` alone. Throws Error
/// on an unknown kind.
HostArray filled(const CaseTensor& tensor, std::mt19937& random);

}  // namespace dlprim
