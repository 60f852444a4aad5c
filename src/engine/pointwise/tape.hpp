// SPDX-License-Identifier: MIT
// Tape: expressions as a straight line of instructions, equal subexpressions once. What evaluation,
// the host engine and the OpenCL generator walk.
#pragma once

#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"

#include <span>

namespace dlprim::pointwise {

struct Instruction {
    Op op = Op::constant;
    int a = -1, b = -1, c = -1;  ///< earlier instructions
    double value = 0;            ///< constant
    int number = 0;              ///< input, scalar, dimension
};

struct Tape {
    std::vector<Instruction> code;
    std::vector<int> results;  ///< the instruction of each root
};

Tape compile(std::span<const ExprPtr> roots);

/// What an element of the broadcast shape sees.
struct Point {
    const double* inputs = nullptr;
    const double* scalars = nullptr;
    const std::int64_t* index = nullptr;
    const Shape* shape = nullptr;
    std::int64_t linear = 0;
};
/// Runs the tape in double; `values` holds one number an instruction.
void run(const Tape& tape, const Point& point, std::vector<double>& values);

}  // namespace dlprim::pointwise
