// SPDX-License-Identifier: MIT
// Programs over the rows of a matrix [rows, columns]: they reduce rows and go on elementwise with
// the results in the same rows, as normalisations do.
//
// Such a program is a list of stages, one a line of text. A stage is a Pointwise program
// (program.hpp), which reads the tensors x0, x1, ... and behind them the results of all earlier
// stages in order. Tensors are full [rows, columns], columns of a single row [rows, 1], lines
// [columns], or single values. A wide stage goes through all elements. Its reductions are over
// columns, and have a value for each row. Any other stage goes through rows, and makes values of
// rows of such values.
//
//   x0: full, x1: a line      stage 0, wide   y0 = mean[1](x0 * x0)        x2: a value for each row
//                             stage 1         y0 = rsqrt(x2 + p0)          x3: the same
//                             stage 2, wide   y0 = x0 * x3 * x1            x4: full
#pragma once

#include "engine/pointwise/job.hpp"

namespace dlprim::pointwise {

/// The stages with elementwise results put into the expressions that read them. Inputs from
/// `inputs` on are the values of reductions.
struct RowProgram {
    struct Result {
        ExprPtr value;
        bool wide = false;  ///< an element for each column; else one for each row
    };
    int inputs = 0;
    std::vector<Output> reductions;
    std::vector<Result> results;
};

/// Of a node's options "stages", "wide" (for each stage) and "results" (numbers of stages'
/// results), and its number of inputs. Throws Error(invalid_argument).
RowProgram read_rows(const Attrs& attrs, std::size_t inputs);

/// A program over rows as a job of two dimensions, of which the second is reduced. Its outputs are
/// the reductions, which have no operand (-1), and then the results.
struct RowJob {
    Job job;
    int inputs = 0;  ///< tensors; further inputs of the tape are values of reductions
    std::size_t reductions = 0;
    std::vector<bool> wide;  ///< by output

    std::int64_t rows() const { return job.sizes[0]; }
    std::int64_t columns() const { return job.sizes[1]; }
};

RowJob make_row_job(const Problem& problem);

}  // namespace dlprim::pointwise
