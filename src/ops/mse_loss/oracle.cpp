// SPDX-License-Identifier: MIT
// MSELoss: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/mse_loss/operator.hpp"
#include "ops/mse_loss/options.hpp"

namespace dlprim::mse_loss {

void MSELoss::oracle(OracleCall& call) const {
    const HostArray &a = call.inputs[0], &b = call.inputs[1];
    const Options options(call.attrs, a.shape);
    HostArray& y = make_array(call.outputs, 0, options.output, a.dtype);
    for (std::size_t i = 0; i < a.data.size(); ++i) {
        const double d = a.data[i] - b.data[i];
        y.data[options.reduce == Reduce::none ? i : 0] += d * d * options.factor;
    }
}

void MSELoss::oracle_backward(OracleBackwardCall& call) const {
    const HostArray &a = call.inputs[0], &b = call.inputs[1], &dy = call.output_gradients[0];
    const Options options(call.attrs, a.shape);
    call.input_gradients.assign(2, {});
    HostArray& da = make_array(call.input_gradients, 0, a.shape, a.dtype);
    HostArray& db = make_array(call.input_gradients, 1, b.shape, b.dtype);
    for (std::size_t i = 0; i < a.data.size(); ++i) {
        const double flow = dy.data[options.reduce == Reduce::none ? i : 0];
        da.data[i] = 2 * flow * (a.data[i] - b.data[i]) * options.factor;
        db.data[i] = -da.data[i];
    }
}

}  // namespace dlprim::mse_loss
