// SPDX-License-Identifier: MIT
// Inverse of com.microsoft: Gauss and Jordan's elimination with partial pivoting of the matrices
// and the unit matrix beside them. Each step makes one column that of the unit matrix.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// A step is some launches, so large matrices would be slow.
constexpr std::int64_t largest_matrix = 128;

/// Makes column k of the matrices [batch, n, 2 n] that of the unit matrix.
Ref eliminate(Builder& build, Ref matrix, std::int64_t k) {
    const auto type = name_of(matrix->spec.dtype);
    const Ref column = build.slice(matrix, 2, k, k + 1), first = build.slice(matrix, 1, k, k + 1);
    const std::string below = cat("index(1) >= ", k);
    const Ref top =
        build.pointwise(cat("y0 = max[1](", below, " ? abs(x0) : -1)"), {column}, {}, type);
    const Ref place = build.pointwise(
        cat("y0 = min[1](", below, " && (abs(x0) == x1 || x0 != x0) ? index(1) : size(1))"),
        {column, top}, {}, type);
    const Ref row =
        build.pointwise("y0 = sum[1](index(1) == x1 ? x0 : 0)", {matrix, place}, {}, type);
    const Ref pivot = build.slice(row, 2, k, k + 1);
    return build.pointwise(
        cat("moved = index(1) == x1; v = moved ? x2 : x0; f = moved ? x3 : x4;"
            "y0 = index(1) == ",
            k, " ? x6 / x5 : v - f / x5 * x6"),
        {matrix, place, first, build.slice(first, 2, k, k + 1), column, pivot, row}, {}, type);
}

void inverse(Call& call) {
    const Shape x = call.shape(0);
    const int rank = x.rank();
    call.check(rank >= 2 && x[-1] == x[-2] && x[-1] >= 1, "an input of shape ", x.str(),
               " holds no square matrices");
    call.supports(x[-1] <= largest_matrix, "a matrix of more than ", largest_matrix,
                  " rows is not supported, the input has shape ", x.str());
    Builder& build = call.build;
    const std::int64_t n = x[-1], count = x.product(0, rank - 2);
    const DType dtype = call.dtype(0) == DType::f64 ? DType::f64 : DType::f32;
    const Ref given = build.cast(build.reshape(call.in(0), {count, n, n}), dtype);
    const Ref unit = build.pointwise("y0 = index(1) == index(2)", {given}, {}, name_of(dtype));
    Ref matrix = build.add1("Concat", {given, unit}, {{"dim", std::int64_t{2}}});
    for (std::int64_t k = 0; k < n; ++k) matrix = eliminate(build, matrix, k);
    call.set(0, build.cast(build.reshape(build.slice(matrix, 2, n, 2 * n), x), call.dtype(0)));
}

const Rule inverse_table[] = {{"com.microsoft.Inverse", 1, inverse}};

}  // namespace

std::span<const Rule> inverse_rules() {
    return inverse_table;
}

}  // namespace dlprim::onnx
