// SPDX-License-Identifier: MIT
// Long division with float digits: every round divides what is left in float, which has 24 bits,
// multiplies back in integers and keeps the rest. Then integers settle the last step. A round takes
// a little less than float says, so that the product is never larger than what is left.
#include "formats/onnx/rules/integer_division.hpp"

namespace dlprim::onnx {

namespace {

struct Division {
    Ref a, b;
    Ref quotient, rest;  ///< a = quotient * b + rest, where rest is between -2 |b| and 2 |b|
};

Division divide(Builder& build, Ref a, Ref b) {
    const bool wide = size_of(a->spec.dtype) == 8;
    const DType dtype = a->spec.dtype == DType::u64 ? DType::u64 : DType::i64;
    const std::string_view type = name_of(dtype);
    a = build.cast(a, dtype);
    b = build.cast(b, dtype);
    Division made{a, b, nullptr, a};
    for (int round = 0; round < (wide ? 4 : 2); ++round) {
        const Ref digits = build.pointwise("y0 = x1 == 0 ? 0 : trunc(x0 / x1 * p0)", {made.rest, b},
                                           {1 - 1.0 / (1 << 22)}, type);
        made.rest = build.pointwise("y0 = x0 - x1 * x2", {made.rest, digits, b}, {}, type);
        made.quotient = made.quotient
                            ? build.pointwise("y0 = x0 + x1", {made.quotient, digits}, {}, type)
                            : digits;
    }
    return made;
}

/// Brings the rest r between 0 and |b|, with q to match: s is the sign of b, m is |b|.
constexpr const char* settled =
    "s = x1 < 0 ? -1 : 1; m = x1 * s;"
    "q0 = x3 < 0 ? x2 - s : x2; r0 = x3 < 0 ? x3 + m : x3;"
    "q1 = r0 < 0 ? q0 - s : q0; r1 = r0 < 0 ? r0 + m : r0;"
    "q = r1 >= m ? q1 + s : q1; r = r1 >= m ? r1 - m : r1;";

/// Without signs, the rest is never below 0.
constexpr const char* settled_unsigned = "q = x3 >= x1 ? x2 + 1 : x2; r = x3 >= x1 ? x3 - x1 : x3;";

Ref settle(Builder& build, const Division& made, const char* result, DType dtype) {
    return build.pointwise(cat(settled, result), {made.a, made.b, made.quotient, made.rest}, {},
                           name_of(dtype));
}

Ref settle_unsigned(Builder& build, const Division& made, const char* result) {
    return build.pointwise(cat(settled_unsigned, result),
                           {made.a, made.b, made.quotient, made.rest}, {}, "uint64");
}

}  // namespace

Ref integer_quotient(Builder& build, Ref a, Ref b) {
    if (a->spec.dtype == DType::u64) return settle_unsigned(build, divide(build, a, b), "y0 = q");
    return settle(build, divide(build, a, b), "y0 = x0 < 0 && r > 0 ? q + s : q", a->spec.dtype);
}

Ref integer_remainder(Builder& build, Ref a, Ref b, bool like_c) {
    if (a->spec.dtype == DType::u64) return settle_unsigned(build, divide(build, a, b), "y0 = r");
    return settle(build, divide(build, a, b),
                  like_c ? "y0 = x0 < 0 && r > 0 ? r - m : r" : "y0 = x1 < 0 && r > 0 ? r - m : r",
                  a->spec.dtype);
}

}  // namespace dlprim::onnx
