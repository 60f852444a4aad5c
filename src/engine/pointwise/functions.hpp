// SPDX-License-Identifier: MIT
// Functions of the pointwise language: the one table of their names, operation codes and kinds, and
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
    std::string_view name;  ///< as Expr::function holds it
    Op op;
    int arity;
    bool callable;          ///< may be written NAME(...); operators may not
    bool integral;          ///< integers stay integers
    std::string_view text;  ///< operators: as written
};

/// nullptr when there is none.
const Function* find_function(std::string_view name);
const Function& function_of(Op op);
/// Names that may be called in text.
std::vector<std::string> callable_names();

/// Truth of comparisons: the result is 1 or 0.
inline bool is_truth(Op op) {
    return (op >= Op::less && op <= Op::logical_not) || op == Op::isnan || op == Op::isinf;
}

/// The value in double; every operation but leaves and uniform.
double apply(Op op, double a, double b = 0, double c = 0);

}  // namespace dlprim::pointwise
