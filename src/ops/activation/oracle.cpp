// SPDX-License-Identifier: MIT
// Activation: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/activation/operator.hpp"
#include "ops/activation/options.hpp"

namespace dlprim::activation {

void ActivationOperator::oracle(OracleCall& call) const {
    const Options options(call.attrs);
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        y.data[i] = activate(options.function->name, x.data[i], options.alpha, options.beta);
}

void ActivationOperator::oracle_backward(OracleBackwardCall& call) const {
    const Options options(call.attrs);
    const HostArray& x = call.inputs[0];
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i)
        dx.data[i] = dy.data[i] * activate_gradient(options.function->name, x.data[i],
                                                    options.alpha, options.beta);
}

}  // namespace dlprim::activation
