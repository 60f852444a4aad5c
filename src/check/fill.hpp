// SPDX-License-Identifier: MIT
// Values for tensors by the name of their kind. They are the same with every compiler.
#pragma once

#include "base/blocks.hpp"
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
    /// those and the same counted from the end; "once": labels of which none comes twice;
    /// "lengths": rows of cumulative lengths, of which row r ends with ends[r]; "edges": of weights
    /// in blocks, scales that are zero, subnormal, large or negative, and a NaN
    std::string fill = "normal";
    double min = -1, max = 1;  ///< of "uniform"
    std::int64_t classes = 2;
    Ints ends = {};
};

/// Values that the tensor's type can hold. They depend on the state of `random` alone. Throws Error
/// on an unknown kind.
HostArray filled(const CaseTensor& tensor, std::mt19937& random);

/// Weights of about `size` in blocks of a type: random integers, and scales that fit them.
std::vector<std::byte> random_blocks(const GgufType& type, std::size_t bytes, std::mt19937& random,
                                     double size = 1);
/// A tensor of bytes with such weights; filled with "edges", each row has scales of one kind.
HostArray filled_blocks(const GgufType& type, const CaseTensor& tensor, std::mt19937& random);

}  // namespace dlprim
