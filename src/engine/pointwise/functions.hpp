// SPDX-License-Identifier: MIT
// Functions of the pointwise language: the table of their names, operation codes and kinds, and
// their values in double.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlprim::pointwise {

enum class Op : unsigned char {
    // leaves
    constant,
    input,
    scalar,
    index,
    size,
    // operators
    add,
    sub,
    mul,
    div,
    neg,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    logical_and,
    logical_or,
    logical_not,
    // functions
    select,
    min,
    max,
    fma,
    pow,
    exp,
    log,
    log1p,
    expm1,
    sqrt,
    rsqrt,
    abs,
    sign,
    floor,
    ceil,
    round,
    trunc,
    sin,
    cos,
    tan,
    asin,
    acos,
    atan,
    sinh,
    cosh,
    tanh,
    asinh,
    acosh,
    atanh,
    erf,
    sigmoid,
    isnan,
    isinf,
    uniform,
};

struct Function {
    std::string_view name;  ///< as stored in Expr::function
    Op op;
    int arity;
    bool callable;          ///< may be written as NAME(...), which operators may not
    bool integral;          ///< integer operands give an integer result
    std::string_view text;  ///< for operators: as written in programs
};

/// Returns nullptr if there is no such function.
const Function* find_function(std::string_view name);
const Function& function_of(Op op);
/// The names that programs may call.
std::vector<std::string> callable_names();

/// Whether the result is a truth value, 1 or 0.
inline bool is_truth(Op op) {
    return (op >= Op::less && op <= Op::logical_not) || op == Op::isnan || op == Op::isinf;
}

/// The value in double, for every operation except leaves and uniform.
double apply(Op op, double a, double b = 0, double c = 0);

}  // namespace dlprim::pointwise
