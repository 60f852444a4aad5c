// SPDX-License-Identifier: MIT
// Elementwise: the oracle.
#include "engine/activations.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/elementwise/operator.hpp"
#include "ops/elementwise/options.hpp"

#include <algorithm>

namespace dlprim::elementwise {

namespace {

double combine(const Options& options, double a, double b) {
    a *= options.coef1;
    b *= options.coef2;
    switch (options.operation) {
        case Operation::sum:
            return a + b;
        case Operation::prod:
            return a * b;
        case Operation::max:
            return std::max(a, b);
    }
    return 0;
}

}  // namespace

void Elementwise::oracle(OracleCall& call) const {
    const Options options(call.attrs);
    const Activation& function = find_activation(options.activation);
    const HostArray &a = call.inputs[0], &b = call.inputs[1];
    HostArray& y = make_array(call.outputs, 0, broadcast(a.shape, b.shape), a.dtype);
    for_each_position(y.shape, [&](const auto& index, std::size_t i) {
        const double value = combine(options, a.data[broadcast_offset(a.shape, index)],
                                     b.data[broadcast_offset(b.shape, index)]);
        y.data[i] = activate(function.name, value, function.alpha, function.beta);
    });
}

void Elementwise::oracle_backward(OracleBackwardCall& call) const {
    const Options options(call.attrs);
    const Activation& function = find_activation(options.activation);
    const HostArray &a = call.inputs[0], &b = call.inputs[1], &dy = call.output_gradients[0];
    call.input_gradients.resize(2);
    HostArray& da = make_array(call.input_gradients, 0, a.shape, a.dtype);
    HostArray& db = make_array(call.input_gradients, 1, b.shape, b.dtype);
    for_each_position(dy.shape, [&](const auto& index, std::size_t i) {
        const std::size_t at_a = broadcast_offset(a.shape, index),
                          at_b = broadcast_offset(b.shape, index);
        const double x = a.data[at_a] * options.coef1, y = b.data[at_b] * options.coef2;
        const double value = combine(options, a.data[at_a], b.data[at_b]);
        const double flow =
            dy.data[i] * activate_gradient(function.name, value, function.alpha, function.beta);
        double to_a = 1, to_b = 1;
        if (options.operation == Operation::prod) {
            to_a = y;
            to_b = x;
        } else if (options.operation == Operation::max) {
            to_a = x > y ? 1 : x == y ? 0.5 : 0;
            to_b = 1 - to_a;
        }
        da.data[at_a] += flow * to_a * options.coef1;
        db.data[at_b] += flow * to_b * options.coef2;
    });
}

}  // namespace dlprim::elementwise
