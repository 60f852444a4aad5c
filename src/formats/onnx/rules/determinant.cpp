// SPDX-License-Identifier: MIT
// Det: Gaussian elimination with partial pivoting. Each step finds the largest element of the first
// column, exchanges its row with the first one, and goes on with the matrix without its first row
// and column.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// A step is some launches, so large matrices would be slow.
constexpr std::int64_t largest_matrix = 128;

Ref slice_of(Builder& build, Ref value, std::int64_t dim, std::int64_t begin, std::int64_t end) {
    return build.add1("Slice", {value}, {{"dim", dim}, {"begin", begin}, {"end", end}});
}

/// Multiplies `factor` by the pivot, and returns what is left of the matrices [batch, n, n].
Ref eliminate(Builder& build, Ref matrix, Ref& factor) {
    const std::int64_t n = matrix->spec.shape[1];
    const Ref column = slice_of(build, matrix, 2, 0, 1), first = slice_of(build, matrix, 1, 0, 1);
    const Ref top = build.pointwise("y0 = max[1](abs(x0))", {column});
    const Ref place = build.pointwise("y0 = min[1](abs(x0) == x1 || x0 != x0 ? index(1) : size(1))",
                                      {column, top});
    const Ref row = build.pointwise("y0 = sum[1](index(1) == x1 ? x0 : 0)", {matrix, place});
    const Ref pivot = slice_of(build, row, 2, 0, 1);
    factor = build.pointwise("y0 = x0 * (x1 == 0 ? x2 : -x2)", {factor, place, pivot});
    const Ref left = build.pointwise(
        "moved = index(1) == x1; v = moved ? x2 : x0; f = moved ? x3 : x4;"
        "y0 = v - (x5 == 0 ? 0 : f / x5) * x6",
        {matrix, place, first, slice_of(build, first, 2, 0, 1), column, pivot, row});
    return slice_of(build, slice_of(build, left, 1, 1, n), 2, 1, n);
}

void determinant(Call& call) {
    const Shape x = call.shape(0);
    const int rank = x.rank();
    call.check(rank >= 2 && x[-1] == x[-2] && x[-1] >= 1, "an input of shape ", x.str(),
               " holds no square matrices");
    call.supports(x[-1] <= largest_matrix, "a matrix of more than ", largest_matrix,
                  " rows is not supported, the input has shape ", x.str());
    Builder& build = call.build;
    const std::int64_t count = x.product(0, rank - 2);
    Ref matrix = build.reshape(call.in(0), {count, x[-1], x[-1]}), factor = nullptr;
    for (std::int64_t n = x[-1]; n > 1; --n) {
        if (!factor) factor = build.constant("", host_numbers({1, 1, 1}, {1}, call.dtype(0)));
        matrix = eliminate(build, matrix, factor);
    }
    if (factor) matrix = build.pointwise("y0 = x0 * x1", {factor, matrix});
    const Ints sizes = x.to_vector();
    call.set(0, build.reshape(matrix, Shape(Ints(sizes.begin(), sizes.end() - 2))));
}

const Rule determinant_table[] = {{"Det", 11, determinant}};

}  // namespace

std::span<const Rule> determinant_rules() {
    return determinant_table;
}

}  // namespace dlprim::onnx
