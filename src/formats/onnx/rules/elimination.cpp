// SPDX-License-Identifier: MIT
// Det, and Inverse of com.microsoft: elimination with partial pivoting. Each step finds the largest
// element of a column and exchanges its row. For a determinant (Gauss) it goes on with the matrix
// without its first row and column; for an inverse (Gauss and Jordan) the matrices have the unit
// matrix beside them, and it makes the column that of the unit matrix.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// A step is some launches, so large matrices would be slow.
constexpr std::int64_t largest_matrix = 128;

/// The input's shape, [..., n, n].
Shape square(const Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 2 && x[-1] == x[-2] && x[-1] >= 1, "an input of shape ", x.str(),
               " holds no square matrices");
    call.supports(x[-1] <= largest_matrix, "a matrix of more than ", largest_matrix,
                  " rows is not supported, the input has shape ", x.str());
    return x;
}

/// Multiplies `factor` by the pivot, and returns what is left of the matrices [batch, n, n].
Ref without_first_row(Builder& build, Ref matrix, Ref& factor) {
    const std::int64_t n = matrix->spec.shape[1];
    const Ref column = build.slice(matrix, 2, 0, 1), first = build.slice(matrix, 1, 0, 1);
    const Ref top = build.pointwise("y0 = max[1](abs(x0))", {column});
    const Ref place = build.pointwise("y0 = min[1](abs(x0) == x1 || x0 != x0 ? index(1) : size(1))",
                                      {column, top});
    const Ref row = build.pointwise("y0 = sum[1](index(1) == x1 ? x0 : 0)", {matrix, place});
    const Ref pivot = build.slice(row, 2, 0, 1);
    factor = build.pointwise("y0 = x0 * (x1 == 0 ? x2 : -x2)", {factor, place, pivot});
    const Ref left = build.pointwise(
        "moved = index(1) == x1; v = moved ? x2 : x0; f = moved ? x3 : x4;"
        "y0 = v - (x5 == 0 ? 0 : f / x5) * x6",
        {matrix, place, first, build.slice(first, 2, 0, 1), column, pivot, row});
    return build.slice(build.slice(left, 1, 1, n), 2, 1, n);
}

void determinant(Call& call) {
    const Shape x = square(call);
    Builder& build = call.build;
    const std::int64_t count = x.product(0, x.rank() - 2);
    Ref matrix = build.reshape(call.in(0), {count, x[-1], x[-1]}), factor = nullptr;
    for (std::int64_t n = x[-1]; n > 1; --n) {
        if (!factor) factor = build.constant("", host_numbers({1, 1, 1}, {1}, call.dtype(0)));
        matrix = without_first_row(build, matrix, factor);
    }
    if (factor) matrix = build.pointwise("y0 = x0 * x1", {factor, matrix});
    const Ints sizes = x.to_vector();
    call.set(0, build.reshape(matrix, Shape(Ints(sizes.begin(), sizes.end() - 2))));
}

/// Makes column k of the matrices [batch, n, 2 n] that of the unit matrix.
Ref eliminate(Builder& build, Ref matrix, std::int64_t k) {
    const DType type = matrix->spec.dtype;
    const Ref column = build.slice(matrix, 2, k, k + 1), first = build.slice(matrix, 1, k, k + 1);
    const std::vector<double> at{static_cast<double>(k)};
    const Ref top =
        build.pointwise("y0 = max[1](index(1) >= p0 ? abs(x0) : -1)", {column}, at, type);
    const Ref place = build.pointwise(
        "y0 = min[1](index(1) >= p0 && (abs(x0) == x1 || x0 != x0) ? index(1) : size(1))",
        {column, top}, at, type);
    const Ref row = build.pointwise("y0 = sum[1](index(1) == x1 ? x0 : 0)", {matrix, place}, type);
    const Ref pivot = build.slice(row, 2, k, k + 1);
    return build.pointwise(
        "moved = index(1) == x1; v = moved ? x2 : x0; f = moved ? x3 : x4;"
        "y0 = index(1) == p0 ? x6 / x5 : v - f / x5 * x6",
        {matrix, place, first, build.slice(first, 2, k, k + 1), column, pivot, row}, at, type);
}

void inverse(Call& call) {
    const Shape x = square(call);
    Builder& build = call.build;
    const std::int64_t n = x[-1], count = x.product(0, x.rank() - 2);
    const DType dtype = call.dtype(0) == DType::f64 ? DType::f64 : DType::f32;
    const Ref given = build.cast(build.reshape(call.in(0), {count, n, n}), dtype);
    const Ref unit = build.pointwise("y0 = index(1) == index(2)", {given}, dtype);
    Ref matrix = build.concat({given, unit}, 2);
    for (std::int64_t k = 0; k < n; ++k) matrix = eliminate(build, matrix, k);
    call.set(0, build.cast(build.reshape(build.slice(matrix, 2, n, 2 * n), x), call.dtype(0)));
}

}  // namespace

std::vector<Rule> elimination_rules() {
    return {{"Det", 11, determinant}, {"com.microsoft.Inverse", 1, inverse}};
}

}  // namespace dlprim::onnx
