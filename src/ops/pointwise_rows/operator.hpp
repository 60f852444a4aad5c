// SPDX-License-Identifier: MIT
// The operator PointwiseRows, which the pass join_rows makes of Pointwise nodes, and its engines.
#pragma once

#include "engine/engine.hpp"
#include "engine/pointwise/row_program.hpp"
#include "graph/declared_operator.hpp"

#include <dlprim/op_options.hpp>

namespace dlprim::pointwise_rows {

/// What the options mean: engine/pointwise/row_program.hpp.
struct Options {
    static constexpr std::string_view type = "PointwiseRows";
    std::string stages = {};
    ops::IntList wide = {}, results = {};
    std::vector<double> scalars = {};
    std::vector<DType> dtypes = {};
    static constexpr auto fields() {
        return ops::option_table(
            ops::required<&Options::stages>("the programs, one a line"),
            ops::required<&Options::wide>("for each stage, whether it goes through all elements"),
            ops::required<&Options::results>("the stages' results that are outputs, by number"),
            ops::option<&Options::scalars>("values of p0, p1, ..., which all stages share"),
            ops::option<&Options::dtypes>("types of the outputs"));
    }
};

/// [rows, columns].
Shape whole_shape(std::span<const TensorSpec> inputs);

void add_generated_engine(EngineRegistry& engines);  ///< generated.cpp
void add_host_engine(EngineRegistry& engines);       ///< host.cpp

}  // namespace dlprim::pointwise_rows
