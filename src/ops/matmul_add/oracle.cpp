// SPDX-License-Identifier: MIT
// MatMulAdd in plain loops over the elements of the product, each with its batch's matrices.
#include "ops/matmul_add/operator.hpp"

#include <algorithm>

namespace dlprim::matmul_add {

namespace {

/// An operand seen as [batch..., rows, columns], with strides of 0 where it is broadcast.
struct Matrices {
    std::vector<std::int64_t> batch;  ///< strides of the batch dimensions of the product
    std::int64_t row = 0, column = 0;
};

struct Product {
    std::vector<std::int64_t> sizes;  ///< of the batch dimensions
    std::int64_t m = 1, n = 1, k = 1;
    Matrices a, b, c;
};

std::int64_t at(const Shape& shape, int from_end) {
    return from_end <= shape.rank() ? shape[-from_end] : 1;
}
std::int64_t stride(const Shape& shape, int from_end) {
    if (from_end > shape.rank() || shape[-from_end] == 1) return 0;
    return shape.product(shape.rank() - from_end + 1, shape.rank());
}

Shape matrix(const Shape& shape, bool left) {
    if (shape.rank() != 1) return shape;
    return left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

Product product_of(const Attrs& attrs, const Shape& a_given, const Shape& b_given, Shape c) {
    const bool turn_a = attrs.boolean("transpose_a") && a_given.rank() > 1,
               turn_b = attrs.boolean("transpose_b") && b_given.rank() > 1;
    const Shape a = matrix(a_given, true), b = matrix(b_given, false);
    // The product of a vector lacks a dimension, which c gets back here.
    std::vector<std::int64_t> dims = c.to_vector();
    if (b_given.rank() == 1 && !dims.empty()) dims.push_back(1);
    if (a_given.rank() == 1 && !dims.empty()) dims.insert(dims.end() - 1, 1);
    c = Shape(dims);
    Product p;
    p.m = at(a, turn_a ? 1 : 2);
    p.k = at(a, turn_a ? 2 : 1);
    p.n = at(b, turn_b ? 2 : 1);
    p.a = {{}, stride(a, turn_a ? 1 : 2), stride(a, turn_a ? 2 : 1)};
    p.b = {{}, stride(b, turn_b ? 1 : 2), stride(b, turn_b ? 2 : 1)};
    p.c = {{}, stride(c, 2), stride(c, 1)};
    for (int i = std::max({a.rank(), b.rank(), 2}); i > 2; --i) {
        p.sizes.push_back(std::max(at(a, i), at(b, i)));
        if (at(a, i) == 0 || at(b, i) == 0) p.sizes.back() = 0;
        p.a.batch.push_back(stride(a, i));
        p.b.batch.push_back(stride(b, i));
        p.c.batch.push_back(stride(c, i));
    }
    return p;
}

/// Calls visit(element of y, row of a, column of b, element of c): where these begin.
template <typename Visit>
void each_element(const Product& p, Visit&& visit) {
    std::int64_t batches = 1;
    for (const std::int64_t size : p.sizes) batches *= size;
    std::size_t to = 0;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        std::int64_t a = 0, b = 0, c = 0, rest = batch;
        for (std::size_t d = p.sizes.size(); d-- > 0;) {
            const std::int64_t i = rest % p.sizes[d];
            rest /= p.sizes[d];
            a += i * p.a.batch[d];
            b += i * p.b.batch[d];
            c += i * p.c.batch[d];
        }
        for (std::int64_t i = 0; i < p.m; ++i)
            for (std::int64_t j = 0; j < p.n; ++j)
                visit(to++, a + i * p.a.row, b + j * p.b.column,
                      static_cast<std::size_t>(c + i * p.c.row + j * p.c.column));
    }
}

}  // namespace

void oracle(OracleCall& call) {
    const HostArray &a = call.inputs[0], &b = call.inputs[1], &c = call.inputs[2];
    const double alpha = call.attrs.number("alpha"), beta = call.attrs.number("beta");
    const Product p = product_of(call.attrs, a.shape, b.shape, c.shape);
    std::vector<std::int64_t> dims = p.sizes;
    if (a.shape.rank() > 1) dims.push_back(p.m);
    if (b.shape.rank() > 1) dims.push_back(p.n);
    HostArray& y = call.outputs[0];
    y.shape = Shape(dims);
    y.dtype = a.dtype;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0);
    each_element(p, [&](std::size_t to, std::int64_t left, std::int64_t right, std::size_t added) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k)
            sum += a.data[static_cast<std::size_t>(left + k * p.a.column)] *
                   b.data[static_cast<std::size_t>(right + k * p.b.row)];
        y.data[to] = alpha * sum + (beta == 0 ? 0 : beta * c.data[added]);
    });
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray &a = call.inputs[0], &b = call.inputs[1];
    const double alpha = call.attrs.number("alpha"), beta = call.attrs.number("beta");
    const Product p = product_of(call.attrs, a.shape, b.shape, call.inputs[2].shape);
    call.input_gradients.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
        call.input_gradients[i] = call.inputs[i];
        call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    const auto to = [&](std::size_t i) { return call.input_gradients[i].data.data(); };
    each_element(p,
                 [&](std::size_t from, std::int64_t left, std::int64_t right, std::size_t added) {
                     const double g = call.output_gradients[0].data[from];
                     to(2)[added] += beta * g;
                     for (std::int64_t k = 0; k < p.k; ++k) {
                         const auto i = static_cast<std::size_t>(left + k * p.a.column),
                                    j = static_cast<std::size_t>(right + k * p.b.row);
                         to(0)[i] += alpha * g * b.data[j];
                         to(1)[j] += alpha * g * a.data[i];
                     }
                 });
    if (beta == 0) call.input_gradients[2].data.clear();
}

}  // namespace dlprim::matmul_add
