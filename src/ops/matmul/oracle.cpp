// SPDX-License-Identifier: MIT
// MatMul in plain loops over logical indices, in double.
#include "base/schema.hpp"
#include "graph/block_oracle.hpp"
#include "ops/matmul/gemm.hpp"
#include "ops/matmul/operator.hpp"

#include <dlprim/op_options.hpp>

#include <cmath>
#include <functional>

namespace dlprim::matmul {

namespace {

/// Calls body(batch, offset of its A, offset of its B) with offsets in elements.
void for_batches(const MatMulShape& s,
                 const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& body) {
    const auto stride_a = s.a.strides(), stride_b = s.b.strides();
    const int rank = s.batch.rank();
    for (std::int64_t i = 0; i < s.batch.numel(); ++i) {
        std::int64_t rest = i, at_a = 0, at_b = 0;
        for (int d = rank - 1; d >= 0; --d) {
            const std::int64_t index = rest % s.batch[d];
            rest /= s.batch[d];
            const int da = d - rank + s.a.rank() - 2, db = d - rank + s.b.rank() - 2;
            if (da >= 0 && s.a[da] > 1) at_a += index * stride_a[static_cast<std::size_t>(da)];
            if (db >= 0 && s.b[db] > 1) at_b += index * stride_b[static_cast<std::size_t>(db)];
        }
        body(i, at_a, at_b);
    }
}

/// An integer as its type holds it, without the bits beyond. Those of 64 bits stay as they are,
/// since a double has fewer.
double wrapped(double value, DType dtype) {
    if (size_of(dtype) == 8) return value;
    const double range = std::ldexp(1.0, 8 * static_cast<int>(size_of(dtype)));
    double rest = value - std::floor(value / range) * range;
    const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32;
    if (is_signed && rest >= range / 2) rest -= range;
    return rest;
}

struct Steps {
    std::int64_t a_row, a_k, b_k, b_column;
};
Steps steps_of(const MatMulShape& s, const ops::MatMul& options, const Shape& a, const Shape& b) {
    Steps steps{s.k, 1, s.n, 1};
    if (options.transpose_a && a.rank() > 1) steps.a_row = 1, steps.a_k = s.m;
    if (options.transpose_b && b.rank() > 1) steps.b_k = 1, steps.b_column = s.k;
    return steps;
}

}  // namespace

void Operator::oracle(OracleCall& call) const {
    const auto options = read<ops::MatMul>(call.attrs);
    call.inputs[1] = unpacked_weights(options.blocks, call.inputs[1]);
    const HostArray &a = call.inputs[0], &b = call.inputs[1];
    const MatMulShape s = matmul_shape(a.shape, b.shape, options.transpose_a, options.transpose_b);
    const Steps at = steps_of(s, options, a.shape, b.shape);
    HostArray& y = call.outputs[0];
    y.shape = s.output;
    y.data.assign(static_cast<std::size_t>(s.output.numel()), 0);
    for_batches(s, [&](std::int64_t i, std::int64_t at_a, std::int64_t at_b) {
        for (std::int64_t row = 0; row < s.m; ++row)
            for (std::int64_t column = 0; column < s.n; ++column) {
                double sum = 0;
                for (std::int64_t p = 0; p < s.k; ++p)
                    sum +=
                        a.data[static_cast<std::size_t>(at_a + row * at.a_row + p * at.a_k)] *
                        b.data[static_cast<std::size_t>(at_b + p * at.b_k + column * at.b_column)];
                sum *= options.alpha;
                if (options.bias) sum += call.inputs[2].data[static_cast<std::size_t>(column)];
                y.data[static_cast<std::size_t>((i * s.m + row) * s.n + column)] =
                    is_integer(a.dtype) ? wrapped(sum, a.dtype) : sum;
            }
    });
}

void Operator::oracle_backward(OracleBackwardCall& call) const {
    const auto options = read<ops::MatMul>(call.attrs);
    call.inputs[1] = unpacked_weights(options.blocks, call.inputs[1]);
    const HostArray &a = call.inputs[0], &b = call.inputs[1], &dy = call.output_gradients[0];
    const MatMulShape s = matmul_shape(a.shape, b.shape, options.transpose_a, options.transpose_b);
    const Steps at = steps_of(s, options, a.shape, b.shape);
    call.input_gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        call.input_gradients[i].shape = call.inputs[i].shape;
        call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    for_batches(s, [&](std::int64_t i, std::int64_t at_a, std::int64_t at_b) {
        for (std::int64_t row = 0; row < s.m; ++row)
            for (std::int64_t column = 0; column < s.n; ++column) {
                const double g = dy.data[static_cast<std::size_t>((i * s.m + row) * s.n + column)];
                if (options.bias)
                    call.input_gradients[2].data[static_cast<std::size_t>(column)] += g;
                for (std::int64_t p = 0; p < s.k; ++p) {
                    const auto ia = static_cast<std::size_t>(at_a + row * at.a_row + p * at.a_k);
                    const auto ib =
                        static_cast<std::size_t>(at_b + p * at.b_k + column * at.b_column);
                    call.input_gradients[0].data[ia] += options.alpha * g * b.data[ib];
                    call.input_gradients[1].data[ib] += options.alpha * g * a.data[ia];
                }
            }
    });
}

}  // namespace dlprim::matmul
