// SPDX-License-Identifier: MIT
// The pointwise-and-reduce language: one program over any number of broadcast tensors.
//
//   y0 = max(x0 * p0 + x1, 0); y1 = sum[0,2,3](x0); y2 = sum[0,2,3](x0 * x0)
//
// x0, x1, ... are inputs (numpy broadcasting), p0, p1, ... are scalar parameters, and y0, y1, ...
// are outputs in order. A name without digits may be defined first: `t = x0 - x1; y0 = t * t`. The
// right side of an output is an elementwise expression or one reduction over the listed axes
// (`sum[](e)` is over all axes):
//   sum, prod, max, min, mean         with their natural initial values
//   reduce[axes; init; combine](e)    combine is an expression in a and b that is associative and
//                                     commutative
// The functions are those of functions.cpp, and docs/pointwise.md has them all; operators are + - *
// / unary- < <= > >= == != && || ! and c ? a : b. Truth values are 1 or 0. index(d) is the
// element's position along dimension d of the broadcast shape, and size(d) is the size of that
// dimension. uniform(seed, step, id) is a number in [0, 1) by Philox4x32-10, normal() one of the
// standard normal distribution and random() 32 bits, the same on every device (philox.hpp).
// Arithmetic is in float, or in double if an operand is double and the device supports it. Integer
// operands are converted to float, or to long if all operands are integers.
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

/// A node of an expression, immutable and shared.
struct Expr {
    enum class Kind { constant, input, scalar, index, size, call };
    Kind kind;
    double value = 0;      ///< constant
    bool bound = false;    ///< constant: computed from scalars (bind_scalars)
    int number = 0;        ///< of the input or scalar, or the dimension of index/size
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

/// Throws Error(invalid_argument) with the column and what was expected there. The input is not
/// trusted: nesting deeper than 200 and programs of more than 10,000 nodes are errors.
Program parse(std::string_view code);
/// The same program without a copy. Programs of one text share expressions, which do not change.
std::shared_ptr<const Program> parsed(std::string_view code);
/// That of parsed() with all expressions simplified.
std::shared_ptr<const Program> parsed_simple(std::string_view code);
/// Text that parse() converts to an equal program.
std::string print(const Program& program);
std::string print(const ExprPtr& expr);

/// d expr / d input `number`, simplified, or nullptr if it is zero everywhere. Comparisons, index,
/// rounding and random numbers have gradient zero, that of trigamma is Error(unsupported). At ties,
/// max and min have the gradient of their first operand, and abs has zero.
ExprPtr differentiate(const ExprPtr& expr, int input);
/// The combination of a reduction, whatever its initial value: a custom reduction that combines by
/// a + b, a * b, max(a, b) or min(a, b) is sum, prod, max or min. Other custom reductions are
/// custom.
Output::Kind combination(const Output& output);
/// Folds constants and applies the identities x+0, x*1, x*0, --x.
ExprPtr simplify(const ExprPtr& expr);
/// Replaces input i by inputs[i] and scalar i by scalars[i] (nullptr: unchanged).
ExprPtr substitute(const ExprPtr& expr, const std::vector<ExprPtr>& inputs,
                   const std::vector<ExprPtr>& scalars);
/// Replaces bound constants by scalars. `values` gets the numbers of new scalars, one for each
/// distinct number; those that it has already are used again.
ExprPtr lift_scalars(const ExprPtr& expr, std::vector<double>& values);
bool uses_input(const ExprPtr& expr, int input);
int node_count(const ExprPtr& expr);

// Builders.
ExprPtr constant(double value, bool bound = false);
ExprPtr input(int number);
ExprPtr scalar(int number);
ExprPtr call(std::string function, std::vector<ExprPtr> args);

/// The value of an elementwise expression in double, for oracles. `at` has the inputs, `scalars`
/// the parameters, and `index` the position in `broadcast`.
double evaluate(const ExprPtr& expr, const std::vector<double>& at,
                const std::vector<double>& scalars, const std::vector<std::int64_t>& index,
                const Shape& broadcast);

}  // namespace dlprim::pointwise
