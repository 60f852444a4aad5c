// SPDX-License-Identifier: MIT
// PReLU: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/prelu/operator.hpp"

#include <cmath>

namespace dlprim::prelu {

namespace {

/// The index of the weight of element i.
std::size_t weight_of(const Shape& x, const Shape& weight, std::size_t i) {
    if (weight[0] == 1) return 0;
    const auto inner = static_cast<std::size_t>(x.product(2, x.rank()));
    return i / inner % static_cast<std::size_t>(x[1]);
}

}  // namespace

void PReLU::oracle(OracleCall& call) const {
    const HostArray &x = call.inputs[0], &weight = call.inputs[1];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        y.data[i] = x.data[i] > 0 ? x.data[i]
                                  : x.data[i] * weight.data[weight_of(x.shape, weight.shape, i)];
}

void PReLU::oracle_backward(OracleBackwardCall& call) const {
    const HostArray &x = call.inputs[0], &weight = call.inputs[1], &dy = call.output_gradients[0];
    call.input_gradients.assign(2, {});
    call.terms.assign(2, {});
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    HostArray& dw = make_array(call.input_gradients, 1, weight.shape, weight.dtype);
    HostArray& terms = make_array(call.terms, 1, weight.shape, weight.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i) {
        const std::size_t k = weight_of(x.shape, weight.shape, i);
        const bool positive = x.data[i] > 0;
        dx.data[i] = positive ? dy.data[i] : dy.data[i] * weight.data[k];
        if (positive) continue;
        dw.data[k] += dy.data[i] * x.data[i];
        terms.data[k] += std::abs(dy.data[i] * x.data[i]);
    }
}

}  // namespace dlprim::prelu
