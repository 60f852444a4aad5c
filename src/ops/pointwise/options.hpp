// SPDX-License-Identifier: MIT
// Options of Pointwise, and what its program makes of given inputs.
#pragma once

#include "engine/pointwise/job.hpp"
#include "graph/operator.hpp"

namespace dlprim::pointwise {

struct Options {
    Program program;
    std::vector<double> scalars;
    Strings dtypes;
    Ints shape;
    bool keep_dim = true;
};
/// Throws Error(invalid_argument) where the program does not parse or scalars are missing.
Options read_options(const Attrs& attrs);
const Schema& pointwise_schema();

std::vector<Shape> shapes_of(std::span<const TensorSpec> inputs);
/// The type of results where the options name none: integers stay integers in integral programs.
DType promoted(const Program& program, std::span<const TensorSpec> inputs);

void pointwise_gradient(const Options& options, GradientContext& context);
void pointwise_oracle(OracleCall& call);
void pointwise_oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::pointwise
