// SPDX-License-Identifier: MIT
// Abs: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/abs/operator.hpp"

#include <cmath>

namespace dlprim::abs_op {

void Abs::oracle(OracleCall& call) const {
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i) y.data[i] = std::fabs(x.data[i]);
}

void Abs::oracle_backward(OracleBackwardCall& call) const {
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        dx.data[i] = x.data[i] > 0 ? dy.data[i] : x.data[i] < 0 ? -dy.data[i] : 0.0;
}

}  // namespace dlprim::abs_op
