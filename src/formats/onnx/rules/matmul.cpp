// SPDX-License-Identifier: MIT
// Matrix products. One with constant weights is an InnerProduct, whose weights planner and solvers
// know; the others are MatMul.
#include "formats/onnx/rules/attention.hpp"

namespace dlprim::onnx {

namespace {

/// x [rows, features] times the weight [outputs, features], perhaps plus a bias [outputs].
Ref inner_product(Builder& build, Ref x, Ref weight, Ref bias) {
    std::vector<Ref> params{weight};
    if (bias) params.push_back(bias);
    return build.add1("InnerProduct", {x},
                      {{"inputs", weight->spec.shape[1]},
                       {"outputs", weight->spec.shape[0]},
                       {"bias", bias != nullptr}},
                      params);
}

/// The bias of a Gemm as one number a column, or null where it is more.
Ref bias_of(Call& call, std::int64_t columns) {
    const Shape& c = call.shape(2);
    if (c.numel() != columns || c[-1] != columns || !call.in(2)->known) return nullptr;
    return call.build.reshape(call.in(2), {columns});
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
    if (alpha == 1 && !transpose_a && call.in(1)->known && is_float(call.dtype(0)) &&
        (bias || !has_bias)) {
        const Ref weight = transpose_b ? call.in(1) : build.transpose(call.in(1), {1, 0});
        return call.set(0, inner_product(build, call.in(0), weight, bias));
    }
    Ref y =
        build.add1("MatMul", {call.in(0), call.in(1)},
                   {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}});
    if (has_bias) y = build.pointwise("y0 = x0 + x1 * p0", {y, call.in(2)}, {beta});
    call.set(0, y);
}

void matmul(Call& call) {
    const Ref a = call.in(0), b = call.in(1);
    const Shape &x = a->spec.shape, &w = b->spec.shape;
    if (a->spec.dtype == DType::f64 && x.rank() >= 2 && w.rank() >= 2)
        return call.set(0, product(call.build, a, b, false, 1));
    Builder& build = call.build;
    if (!b->known || a->known || w.rank() != 2 || x.rank() < 2 || x[-1] != w[0])
        return call.set(0, build.add1("MatMul", {a, b}));
    const std::int64_t rows = x.product(0, x.rank() - 1);
    const Ref matrix = build.reshape(a, {rows, x[-1]}, 0);
    const Ref y = inner_product(build, matrix, build.transpose(b, {1, 0}), nullptr);
    call.set(0, build.reshape(y, x.with(x.rank() - 1, w[1]), 0));
}

const Rule rules[] = {{"Gemm", 1, gemm}, {"MatMul", 1, matmul}};

}  // namespace

std::span<const Rule> matmul_rules() {
    return rules;
}

}  // namespace dlprim::onnx
