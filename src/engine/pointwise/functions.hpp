// SPDX-License-Identifier: MIT
// Functions of the pointwise language: the table of their names, operation codes and kinds, and
// their values in double.
#pragma once

#include <cstdint>
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
    exp2,
    log2,
    log10,
    erfc,
    erfinv,
    lgamma,
    digamma,
    trigamma,
    atan2,
    hypot,
    copysign,
    nextafter,
    // quotients and remainders
    fmod,
    remainder,
    floordiv,
    truncdiv,
    isnan,
    isinf,
    // bits of integers
    bit_and,
    bit_or,
    bit_xor,
    bit_not,
    shift_left,
    shift_right,
    // random numbers, by the element's position
    uniform,
    normal,
    random,
};

struct Function {
    std::string_view name;  ///< as stored in Expr::function
    Op op;
    int arity;
    bool callable;  ///< may be written as NAME(...), which operators may not
    bool integral;  ///< integer operands give an integer result
    /// What it costs, if it gives the same bits in every kernel, whatever its vector width; else 0.
    /// So a comparison of values that are computed again has the result of one of stored values.
    int operations;
    std::string_view text;  ///< for operators: as written in programs
    /// The value in double; null for those of bits, and random numbers.
    using Value = double (*)(double a, double b, double c);
    Value value = nullptr;
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

/// Whether the result is a random number.
inline bool is_random(Op op) {
    return op >= Op::uniform;
}

/// Whether kernels have a function of their own for it, since OpenCL C has none with these results.
/// `whole`: for 64-bit integers.
inline bool is_own(Op op, bool whole) {
    return op == Op::erfinv || op == Op::digamma || op == Op::trigamma || op == Op::remainder ||
           op == Op::floordiv || (whole && (op == Op::fmod || op == Op::truncdiv));
}

/// Whether the operation works on the bits of 64-bit integers. In float arithmetic its operands are
/// rounded towards zero first.
inline bool is_bitwise(Op op) {
    return op >= Op::bit_and && op <= Op::shift_right;
}
/// The value of such an operation. A shift by an amount outside of 0 to 63 moves all bits out.
inline std::int64_t apply_bits(Op op, std::int64_t a, std::int64_t b) {
    const bool moves_all = b < 0 || b > 63;
    switch (op) {
        case Op::bit_and:
            return a & b;
        case Op::bit_or:
            return a | b;
        case Op::bit_xor:
            return a ^ b;
        case Op::bit_not:
            return ~a;
        case Op::shift_left:
            return moves_all ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
        default:
            return a >> (moves_all ? 63 : b);
    }
}

/// The value in double, for every operation except leaves and random numbers.
double apply(Op op, double a, double b = 0, double c = 0);
/// The same in a program on 64-bit integers, where sums and products wrap around and a quotient by
/// 0 is 0.
double apply_whole(Op op, double a, double b = 0, double c = 0);

}  // namespace dlprim::pointwise
