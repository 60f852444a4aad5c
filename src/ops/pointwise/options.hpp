// SPDX-License-Identifier: MIT
// Options of Pointwise, and the properties of its results for given inputs.
#pragma once

#include "engine/pointwise/job.hpp"
#include "graph/operator.hpp"

namespace dlprim::pointwise {

struct Options {
    Program program;
    std::vector<double> scalars;
    std::string arguments;  ///< of the scalars, where they are set for each run (job.hpp)
    Strings dtypes;
    Ints shape;
    bool keep_dim = true;
};
/// Throws Error(invalid_argument) if the program has syntax errors or scalars are missing.
Options read_options(const Attrs& attrs);

std::vector<Shape> shapes_of(std::span<const TensorSpec> inputs);
/// The type of results if the options do not set it. In integral programs, integers stay integers.
DType promoted(const Options& options, std::span<const TensorSpec> inputs);

void pointwise_gradient(const Options& options, GradientContext& context);
void pointwise_oracle(OracleCall& call);
void pointwise_oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::pointwise
