// SPDX-License-Identifier: MIT
// Matrix products. One with constant weights is an InnerProduct, whose weights planner and solvers
// know; the others are MatMul.
#include "formats/onnx/rules/attention.hpp"
#include "formats/onnx/rules/product_weight.hpp"

namespace dlprim::onnx {

namespace {

/// The bias of a Gemm as one number a column, or null where it is more.
Ref bias_of(Call& call, std::int64_t columns) {
    const Shape& c = call.shape(2);
    if (c.numel() != columns || c[-1] != columns || !call.in(2)->known) return nullptr;
    return call.build.reshape(call.in(2), {columns});
}

/// Whether MatMul, which computes in float, is not exact enough.
bool is_exact(DType dtype) {
    return dtype == DType::f64 || is_integer(dtype);
}

/// A product of numbers of such a type; one dimension is a row on the left, a column on the right.
Ref exact_product(Call& call, Ref a, Ref b) {
    Builder& build = call.build;
    const Shape x = a->spec.shape, w = b->spec.shape;
    const bool row = x.rank() == 1, column = w.rank() == 1;
    call.check(x.rank() >= 1 && w.rank() >= 1 && x[-1] == w[column ? 0 : -2] &&
                   a->spec.dtype == b->spec.dtype,
               "factors of ", AnyValue(a).str(), " and ", AnyValue(b).str(), " do not fit");
    if (row) a = build.reshape(a, {1, x[0]});
    if (column) b = build.reshape(b, {w[0], 1});
    const Ref y = product(build, a, b, false, 1);
    Ints sizes = y->spec.shape.to_vector();
    if (column) sizes.pop_back();
    if (row) sizes.erase(sizes.end() - (column ? 1 : 2));
    return build.reshape(y, Shape(sizes));
}

/// The second factor as a weight; nothing if it is computed. `columns` is the dimension over which
/// the product sums.
std::optional<ProductWeight> known_weight(Call& call, int columns) {
    const Ref matrix = call.in(1);
    if (call.dtype(0) == call.dtype(1))
        if (auto weight = in_blocks(call, matrix, columns)) return weight;
    if (!matrix->known) return std::nullopt;
    return ProductWeight::of_floats(columns == 1 ? matrix : call.build.transpose(matrix, {1, 0}));
}

void gemm(Call& call) {
    if (call.version() < 7) call.ignore("broadcast");  // as it always is later
    const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
    const bool transpose_a = call.integer("transA", 0) != 0,
               transpose_b = call.integer("transB", 0) != 0;
    call.check(call.shape(0).rank() == 2 && call.shape(1).rank() == 2, "factors of shapes ",
               call.shape(0).str(), " and ", call.shape(1).str(), " are no matrices");
    Builder& build = call.build;
    const std::int64_t columns = call.shape(1)[transpose_b ? 0 : 1];
    const bool has_bias = call.has(2) && beta != 0;
    const Ref bias =
        has_bias && beta == 1 && call.shape(2).rank() > 0 ? bias_of(call, columns) : nullptr;
    const bool exact = is_exact(call.dtype(0));
    if (alpha == 1 && !transpose_a && !exact && !call.shape(1).empty() && (bias || !has_bias)) {
        if (const auto weight = known_weight(call, transpose_b ? 1 : 0))
            return call.set(0, inner_product(build, call.in(0), *weight, bias));
    }
    const auto turned = [&](int i, bool turn) {
        return turn ? build.transpose(call.in(i), {1, 0}) : call.in(i);
    };
    Ref y = nullptr;
    if (exact) {
        y = exact_product(call, turned(0, transpose_a), turned(1, transpose_b));
        if (alpha != 1) y = build.pointwise("y0 = x0 * p0", {y}, {alpha}, call.dtype(0));
    } else {
        y = build.add1(
            "MatMul", {call.in(0), call.in(1)},
            {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}});
    }
    if (has_bias) y = build.pointwise("y0 = x0 + x1 * p0", {y, call.in(2)}, {beta}, call.dtype(0));
    call.set(0, y);
}

void matmul(Call& call) {
    const Ref a = call.in(0), b = call.in(1);
    const Shape &x = a->spec.shape, &w = b->spec.shape;
    if (is_exact(a->spec.dtype)) return call.set(0, exact_product(call, a, b));
    Builder& build = call.build;
    const bool fits = w.rank() == 2 && x.rank() >= 2 && x[-1] == w[0] && !w.empty();
    const auto weight = fits && !a->known ? known_weight(call, 0) : std::optional<ProductWeight>();
    if (!weight) return call.set(0, build.add1("MatMul", {a, b}));
    const std::int64_t rows = x.product(0, x.rank() - 1);
    const Ref matrix = build.reshape(a, {rows, x[-1]}, 0);
    const Ref y = inner_product(build, matrix, *weight, nullptr);
    call.set(0, build.reshape(y, x.with(x.rank() - 1, w[1]), 0));
}

}  // namespace

std::vector<Rule> matmul_rules() {
    return {{"Gemm", 1, gemm}, {"MatMul", 1, matmul}};
}

}  // namespace dlprim::onnx
