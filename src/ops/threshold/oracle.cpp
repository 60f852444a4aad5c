// SPDX-License-Identifier: MIT
// Threshold: the oracle.
#include "graph/oracle_loops.hpp"
#include "ops/threshold/operator.hpp"

namespace dlprim::threshold {

void Threshold::oracle(OracleCall& call) const {
    // The comparison is in the tensor's precision, as on devices.
    const auto limit = static_cast<double>(static_cast<float>(call.attrs.number("threshold")));
    const HostArray& x = call.inputs[0];
    HostArray& y = make_array(call.outputs, 0, x.shape, x.dtype);
    for (std::size_t i = 0; i < x.data.size(); ++i) y.data[i] = x.data[i] > limit ? 1.0 : 0.0;
}

void Threshold::oracle_backward(OracleBackwardCall& call) const {
    make_array(call.input_gradients, 0, call.inputs[0].shape, call.inputs[0].dtype);
}

}  // namespace dlprim::threshold
