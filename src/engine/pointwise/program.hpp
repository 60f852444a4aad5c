// SPDX-License-Identifier: MIT
// The pointwise-and-reduce language: one program over any number of broadcast tensors.
//
//   y0 = max(x0 * p0 + x1, 0); y1 = sum[0,2,3](x0); y2 = sum[0,2,3](x0 * x0)
//
// x0.. are inputs (numpy broadcasting), p0.. scalar parameters, y0.. outputs in order. A name
// without digits may be bound first: `t = x0 - x1; y0 = t * t`. The right side of an output is
// elementwise or one reduction over the listed axes (`sum[](e)`: over all):
//   sum, prod, max, min, mean         with their natural initial values
//   reduce[axes; init; combine](e)    combine is an expression in a and b, associative and
//   commutative
// Functions: exp log log1p expm1 sqrt rsqrt abs sign floor ceil round sin cos tan tanh erf pow min
// max fma select(c,a,b) isnan; operators + - * / unary- < <= > >= == != && || ! and c ? a : b
// (truth is 1 or 0). index(d): the element's position along dimension d of the broadcast shape.
// size(d): that size. uniform(seed, step, id): Philox4x32-10 in [0, 1), keyed by (seed, step, id)
// with the element's linear index in the broadcast shape as counter; the same on every device.
// Arithmetic is float; double where an operand is double and the device has it; integer operands
// are converted to float (to long when all operands are integers).
//
// Philox: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::pointwise {

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

/// A node of an expression. Immutable and shared.
struct Expr {
    enum class Kind { constant, input, scalar, index, size, call };
    Kind kind;
    double value = 0;      ///< constant
    int number = 0;        ///< input, scalar, or dimension of index/size
    std::string function;  ///< call: "add", "mul", "exp", "select", "uniform", "less", ...
    std::vector<ExprPtr> args;
};

struct Output {
    enum class Kind { elementwise, sum, prod, max, min, mean, custom };
    Kind kind = Kind::elementwise;
    ExprPtr value;
    bool all_axes = false;
    Ints axes;        ///< reductions: dimensions of the broadcast shape, may be negative
    double init = 0;  ///< custom
    ExprPtr combine;  ///< custom: inputs 0 and 1 are a and b
};

struct Program {
    int inputs = 0;
    int scalars = 0;
    std::vector<Output> outputs;
};

/// Throws Error(invalid_argument) with the column and what was expected there. Input is hostile:
/// nesting deeper than 200 and programs of more than 10,000 nodes are errors.
Program parse(std::string_view code);
/// Text that parse() turns into an equal program.
std::string print(const Program& program);
std::string print(const ExprPtr& expr);

/// d expr / d input `number`, simplified; nullptr where it is zero everywhere. Comparisons, index,
/// floor and uniform have gradient zero; max, min and abs give the first branch at ties (abs: 0).
ExprPtr differentiate(const ExprPtr& expr, int input);
/// What a reduction combines by, whatever it starts from: a custom one whose combination is a + b,
/// a * b, max(a, b) or min(a, b) is sum, prod, max or min; another custom one is custom.
Output::Kind combination(const Output& output);
/// Constant folding and the identities x+0, x*1, x*0, --x.
ExprPtr simplify(const ExprPtr& expr);
/// Replaces inputs and scalars: input i by inputs[i], scalar i by scalars[i] (nullptr: unchanged).
ExprPtr substitute(const ExprPtr& expr, const std::vector<ExprPtr>& inputs,
                   const std::vector<ExprPtr>& scalars);
bool uses_input(const ExprPtr& expr, int input);
int node_count(const ExprPtr& expr);

// Builders.
ExprPtr constant(double value);
ExprPtr input(int number);
ExprPtr scalar(int number);
ExprPtr call(std::string function, std::vector<ExprPtr> args);

/// The value of an elementwise expression in double (what oracles use). `at` gives inputs,
/// `scalars` the parameters, `index` the position in `broadcast`.
double evaluate(const ExprPtr& expr, const std::vector<double>& at,
                const std::vector<double>& scalars, const std::vector<std::int64_t>& index,
                const Shape& broadcast);

}  // namespace dlprim::pointwise
