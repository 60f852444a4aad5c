// SPDX-License-Identifier: MIT
// Tape: expressions as a sequence of instructions, in which equal subexpressions occur once.
// Evaluation, the host engine and the OpenCL generator use it.
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

/// The arguments of an expression at one element of the broadcast shape.
struct Point {
    const double* inputs = nullptr;
    const double* scalars = nullptr;
    const std::int64_t* index = nullptr;
    const Shape* shape = nullptr;
    std::int64_t linear = 0;
    bool whole = false;  ///< whether the program is one on 64-bit integers
};
/// Runs the tape in double. `values` has one number per instruction.
void run(const Tape& tape, const Point& point, std::vector<double>& values);

}  // namespace dlprim::pointwise
